"""A crowd that takes all connections there are, and newcomers who come meanwhile.

HOST HTTP_PORT FTP_PORT IPERF3_PORT, then any number of attacks as MANNER:SOURCES:COUNT:PORT. MANNER is idle, head (half a
request) or body (half an upload); SOURCES is the address that all connections come from, or a network /16 of which each
has its own. During each attack and after it, newcomers fetch by HTTP, log in and list by FTP, and run an iperf3 test; each
must succeed on the first try.
"""

import ipaddress
import json
import os
import socket
import subprocess
import sys
import time

host, http, ftp, iperf3 = sys.argv[1], *map(int, sys.argv[2:5])

# Connections of one process.
PROCESS = 15_000

SAY = {
    "idle": b"",
    "head": b"GET / HTTP/1.1\r\nX: ",
    "body": b"PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
}


def run(*command):
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout, (time.monotonic() - begun) * 1e3


def newcomers(worst):
    curl = ("curl", "-sS", "-o", "/dev/null", "--max-time", "10", "-w", "%{time_total}")
    fetched, _ = run(*curl, "-f", f"http://{host}:{http}/memory/64K")
    listed, _ = run(*curl, f"ftp://{host}:{ftp}/")
    _, tested = run("iperf3", "-c", host, "-p", str(iperf3), "-n", "128K", "--connect-timeout", "5000")
    for name, ms in (("HTTP", float(fetched) * 1e3), ("FTP", float(listed) * 1e3), ("iperf3", tested)):
        worst[name] = max(worst.get(name, 0), ms)


def hold(manner, first, count, port, numbers):
    """Opens the connections with these numbers; returns them, the slowest newcomers, and how many were refused."""
    held, worst, refused = [], {}, 0
    for number in numbers:
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        connection.bind((str(first[number % first.num_addresses]), 0))
        connection.settimeout(30)
        try:
            connection.connect((host, port))
            if SAY[manner]:
                connection.send(SAY[manner])
        except OSError:
            refused += 1
        connection.setblocking(False)
        held.append(connection)
        if (number + 1) % (count // 4) == 0:
            if SAY[manner]:
                for other in held:
                    try:
                        other.send(b"X")
                    except OSError:
                        pass
            newcomers(worst)
    return held, worst, refused


def attack(manner, sources, count, port):
    first = ipaddress.ip_network(sources)
    worst, refused = {}, 0
    end_read, end_write = os.pipe()
    for begin in range(0, count, PROCESS):
        # A process has a limit of descriptors; all of them hold their connections to the end.
        told_read, told_write = os.pipe()
        if os.fork() == 0:
            os.close(end_write)
            numbers = range(begin, min(begin + PROCESS, count))
            held, *told = hold(manner, first, count, port, numbers)
            os.write(told_write, json.dumps(told).encode())
            os.close(told_write)
            os.read(end_read, 1)
            os._exit(0)
        os.close(told_write)
        with os.fdopen(told_read) as told:
            times, lost = json.load(told)
        refused += lost
        for name, ms in times.items():
            worst[name] = max(worst.get(name, 0), ms)
    os.close(end_write)
    os.close(end_read)
    for _ in range(0, count, PROCESS):
        os.wait()
    figures = ", ".join(f"{name} {ms:.0f} ms" for name, ms in worst.items())
    print(f"{manner} from {sources} to port {port}: {count} connections, {refused} refused; slowest {figures}", flush=True)


for words in sys.argv[5:]:
    manner, sources, count, port = words.split(":")
    attack(manner, sources, int(count), int(port))
print("all served")
