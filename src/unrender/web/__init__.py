"""Web: parts that the servers of the gateway and of the playground share.

`sockets` opens the listening socket.
"""
