"""A crowd that takes all connections there are, and newcomers who come meanwhile.

HOST HTTP_PORT FTP_PORT IPERF3_PORT, then any number of attacks as MANNER:SOURCES:COUNT:PORT. MANNER is idle, head (half a
request) or body (half an upload); SOURCES is the address that all connections come from, or a network /16 of which each
has its own. During each attack and after it, newcomers fetch by HTTP, log in and list by FTP, and run an iperf3 test; each
must succeed on the first try.
"""

import ipaddress
import socket
import subprocess
import sys
import time

host, http, ftp, iperf3 = sys.argv[1], *map(int, sys.argv[2:5])

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


def attack(manner, sources, count, port):
    first = ipaddress.ip_network(sources)
    held, worst, refused = [], {}, 0
    for number in range(count):
        source = str(first[number % first.num_addresses])
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        connection.bind((source, 0))
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
    figures = ", ".join(f"{name} {ms:.0f} ms" for name, ms in worst.items())
    print(f"{manner} from {sources} to port {port}: {count} connections, {refused} refused; slowest {figures}", flush=True)
    for connection in held:
        connection.close()


for words in sys.argv[5:]:
    manner, sources, count, port = words.split(":")
    attack(manner, sources, int(count), int(port))
print("all served")
