"""HTTP: reads a client's bytes as a request, handles it, and sends frames as the bytes of a response.

uvicorn parses the requests. `door` limits the time for a request's head. `exchange` handles a request that generates text, from its body to
the last frame; read it first. `body` reads JSON and sends streams. `routes`, in the parent package, lists the paths.

Rule: model output never causes an error here. Text from a client is never copied unchanged into a header, a label or a log.
"""
