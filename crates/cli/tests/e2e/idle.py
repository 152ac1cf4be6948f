"""A crowd that stays: HOST PORT COUNT PID.

Opens COUNT connections from a thousand addresses of 198.19.0.0/16, lets them be for five seconds, asks on every hundredth of
them for something, and says how many were opened and answered, and the resident memory of the server with this PID.
"""

import os
import socket
import sys
import time

host, port, count, pid = sys.argv[1], *map(int, sys.argv[2:])

# Connections of one process, which has a limit of descriptors.
PROCESS = 15_000


def resident_kib():
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def connect(number):
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    connection.bind((f"198.19.{1 + number % 1000 // 250}.{1 + number % 250}", 0))
    connection.settimeout(60)
    try:
        connection.connect((host, port))
    except OSError:
        return None
    return connection


def answers(connection):
    try:
        connection.send(b"GET /memory/1K HTTP/1.1\r\nHost: a\r\n\r\n")
        received = b""
        while b"\r\n\r\n" not in received or len(received.split(b"\r\n\r\n", 1)[1]) < 1024:
            piece = connection.recv(65_536)
            if not piece:
                return False
            received += piece
        return received.startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def hold(numbers, go, told):
    held = [connection for connection in map(connect, numbers) if connection]
    os.write(told, f"{len(held)}\n".encode())
    os.read(go, 1)
    asked = held[::100]
    os.write(told, f"{len(asked)} {sum(map(answers, asked))}\n".encode())
    os.read(go, 1)


before, processes, opened = resident_kib(), [], 0
for begin in range(0, count, PROCESS):
    go_read, go_write = os.pipe()
    told_read, told_write = os.pipe()
    if os.fork() == 0:
        # The end of the parent ends this one, too.
        os.close(go_write)
        hold(range(begin, min(begin + PROCESS, count)), go_read, told_write)
        os._exit(0)
    os.close(go_read)
    processes.append((go_write, told_read))
    opened += int(os.read(told_read, 100))
time.sleep(5)
held, asked, answered = resident_kib(), 0, 0
for go, told in processes:
    os.write(go, b"!")
    one, other = map(int, os.read(told, 100).split())
    asked, answered = asked + one, answered + other
print(f"{opened} opened, {answered} of {asked} answered, {before} KiB before, {held} KiB held")
for go, _ in processes:
    os.write(go, b"!")
