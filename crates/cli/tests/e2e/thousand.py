"""Opens 1,000 HTTP connections at once and reads 1 MiB on each, all in step: HOST PORT."""

import selectors
import socket
import sys

host, port = sys.argv[1], int(sys.argv[2])
COUNT, SIZE = 1000, 1 << 20

connections = []
for _ in range(COUNT):
    connection = socket.create_connection((host, port), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connections.append(connection)
# All are open now; none has asked for anything yet.
selector = selectors.DefaultSelector()
for connection in connections:
    connection.sendall(b"GET /memory/1M HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    connection.setblocking(False)
    selector.register(connection, selectors.EVENT_READ, [0, None])

complete = 0
while selector.get_map():
    ready = selector.select(timeout=30)
    assert ready, f"nothing moves any more; {complete} complete"
    for key, _ in ready:
        data = key.fileobj.recv(65536)
        state = key.data
        if state[1] is None:
            head, _, body = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            state[1] = True
            state[0] += len(body)
        else:
            state[0] += len(data)
        if not data:
            assert state[0] == SIZE, state[0]
            complete += 1
            selector.unregister(key.fileobj)
            key.fileobj.close()
print(complete, "complete")
