"""Fetches with TCP Fast Open and says whether the server took the request with the SYN: HOST PORT TIMES."""

import socket
import sys

host, port, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
# Byte 5 of struct tcp_info holds the options, and this one says that data in our SYN was acknowledged by the SYN-ACK.
TCPI_OPT_SYN_DATA = 32
REQUEST = b"GET /memory/100000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

for _ in range(times):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    # Blocks until there is a connection, where there is no cookie yet.
    connection.sendto(REQUEST, socket.MSG_FASTOPEN, (host, port))
    connection.settimeout(10)
    got = bytearray()
    while data := connection.recv(1 << 16):
        got += data
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)
    connection.close()
    head, body = got.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200 ") and len(body) == 100_000, (head, len(body))
    print("early" if info[5] & TCPI_OPT_SYN_DATA else "ordinary")
