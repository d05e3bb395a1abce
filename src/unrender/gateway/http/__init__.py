"""HTTP: reads a client's bytes as a request, handles it, and sends frames as the bytes of a response.

uvicorn parses the requests. `door` limits a request's head, and `guard` rejects requests of foreign web pages. `exchange` handles a request
that generates text, from its body to the last frame; read it first. `stream` sends frames. `descriptors` divides the process's open files.
`routes`, in the parent package, lists the paths, and `uploads` reads bodies.

Rule: model output never causes an error here. Text from a client is never copied unchanged into a header, a label or a log.
"""
