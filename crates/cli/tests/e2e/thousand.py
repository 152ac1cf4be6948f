"""Opens 1,000 HTTP connections at once and reads 1 MiB on each, all in step: HOST PORT [PATH SHA256]."""

import hashlib
import selectors
import socket
import sys

host, port = sys.argv[1], int(sys.argv[2])
path, wanted = sys.argv[3:5] if len(sys.argv) > 3 else ("/memory/1M", None)
COUNT, SIZE = 1000, 1 << 20

connections = []
for _ in range(COUNT):
    connection = socket.create_connection((host, port), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connections.append(connection)
# All are open now; none has asked for anything yet.
selector = selectors.DefaultSelector()
for connection in connections:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    connection.setblocking(False)
    selector.register(connection, selectors.EVENT_READ, [0, None, hashlib.sha256()])

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
            state[2].update(body)
        else:
            state[0] += len(data)
            state[2].update(data)
        if not data:
            assert state[0] == SIZE, state[0]
            assert wanted in (None, state[2].hexdigest()), "other bytes came than were asked for"
            complete += 1
            selector.unregister(key.fileobj)
            key.fileobj.close()
print(complete, "complete")
