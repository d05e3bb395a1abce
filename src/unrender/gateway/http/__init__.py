"""HTTP: bytes of a client → a request that is answered, and frames → bytes of a response.

In come the requests that uvicorn reads; out go an answer, or a refusal in the shape of the API that was asked. `door` bounds the
time of a connection's heads. `exchange` leads one request that generates from its
body to its last frame; open it first. `body` reads JSON and sends streams. `routes`, one floor up, lists the
paths.

Rule: what a model writes is never an error here, and nothing of a client's reaches a header, a label or a log as it is.
"""
