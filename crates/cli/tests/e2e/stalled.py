"""Clients that stop reading, send a byte at a time, vanish or reset, while others are served: HOST PORT FTP_PORT."""

import socket
import struct
import sys
import time

host, port, ftp_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []


def connect(to):
    connection = socket.create_connection((host, to), timeout=10)
    held.append(connection)
    return connection


def fetch():
    connection = socket.create_connection((host, port), timeout=10)
    connection.sendall(b"GET /memory/8M HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    got = 0
    while data := connection.recv(1 << 16):
        got += len(data)
    connection.close()
    assert got > 8 << 20, got


for _ in range(100):
    # Asks for a terabyte and never reads: the window closes.
    connect(port).sendall(b"GET /memory/1T HTTP/1.1\r\nHost: x\r\n\r\n")
for _ in range(100):
    # Half a request.
    connect(port).sendall(b"GET / HT")
for _ in range(40):
    # A session that never logs in.
    connect(ftp_port).sendall(b"US")
for _ in range(200):
    # Resets in the middle of a transfer.
    connection = connect(port)
    connection.sendall(b"GET /memory/1T HTTP/1.1\r\nHost: x\r\n\r\n")
    connection.recv(1000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    held.remove(connection)
for _ in range(20):
    fetch()
# The server ends slow requests by its documented deadline (10 s for a head).
slow = held[100]
slow.settimeout(20)
begun = time.monotonic()
while slow.recv(1000):
    pass
assert time.monotonic() - begun < 15
for _ in range(5):
    fetch()
print("served")
