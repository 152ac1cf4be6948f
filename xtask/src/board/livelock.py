"""Small frames at a rate, and a client beside them: livelock.py DEVICE ADDRESS MAC FRAMES_A_SECOND SECONDS.

Prints the frames sent and the requests answered, each for a second."""

import http.client
import socket
import struct
import sys
import threading
import time

# The client gives a request up after this long, and asks again on another connection.
PATIENCE_S = 1.0
# How often frames are sent that have become due.
PAUSE_S = 0.001


def frame(address, mac):
    """A datagram to a port where nobody listens: 60 bytes, 64 with the check sequence."""
    source, target = socket.inet_aton("192.168.1.101"), socket.inet_aton(address)
    udp = struct.pack("!HHHH", 9, 9, 26, 0) + bytes(18)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, source, target)
    value = sum(struct.unpack("!10H", head))
    value = (value & 0xFFFF) + (value >> 16)
    head = head[:10] + struct.pack("!H", ~(value + (value >> 16)) & 0xFFFF) + head[12:]
    return bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000007") + b"\x08\x00" + head + udp


def ask(address, until, answered):
    connection = None
    while time.monotonic() < until:
        try:
            connection = connection or http.client.HTTPConnection(address, timeout=PATIENCE_S)
            connection.request("GET", "/memory/354")
            if len(connection.getresponse().read()) == 354:
                answered[0] += 1
        except (OSError, http.client.HTTPException):
            if connection:
                connection.close()
            connection = None


def main():
    device, address, mac, rate, seconds = sys.argv[1:]
    rate, seconds = float(rate), float(seconds)
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((device, 0))
    one = frame(address, mac)
    begun = time.monotonic()
    answered, sent = [0], 0
    client = threading.Thread(target=ask, args=(address, begun + seconds, answered))
    client.start()
    while (now := time.monotonic()) < begun + seconds:
        # What could not be sent in time is not made up for.
        for _ in range(min(int((now - begun) * rate) - sent, int(rate * PAUSE_S * 20) + 1)):
            try:
                line.send(one)
            except OSError:
                # The emulator does not take them.
                pass
            sent += 1
        time.sleep(PAUSE_S)
    client.join()
    print(sent / seconds, answered[0] / seconds)


main()
