"""What the test benches of the transmit side share: packets written by scapy, and what a driver asks for them."""

from bench import TX_USER, pack, unpack
from scapy.all import IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPOption_NOP, IPv6, IPv6ExtHdrDestOpt, Raw, in4_chksum, in6_chksum

NONE, PARTIAL, FULL = range(3)
SEG_NONE, SEG_TCP, SEG_UDP = range(3)


def packet(payload, v6=False, udp=False, tags=0, ip_extra=0, options=(), **fields):
    """A packet, as scapy sees it: checksums and lengths are its own."""
    head = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
    for tag in range(tags):
        head /= Dot1AD(vlan=9) if tag == 0 and tags == 2 else Dot1Q(vlan=7)
    if v6:
        head /= IPv6(src="fd00::1", dst="2001:db8::2")
        if ip_extra:
            head /= IPv6ExtHdrDestOpt()
    else:
        head /= IP(src="192.168.1.4", dst="10.0.0.9", id=fields.pop("id", 0xFFFE), flags="DF", options=[IPOption_NOP()] * ip_extra)
    fields.pop("id", None)
    if udp:
        head /= UDP(sport=5301, dport=53)
    else:
        head /= TCP(sport=5301, dport=80, options=list(options), **{"flags": "PA", "seq": 0xFFFFFF00, **fields})
    return head / Raw(payload) if payload else head


class Asked:
    """The bytes of a packet whose checksums are left to the device, and the request for them."""

    def __init__(self, built, seeded=False, channel=5, **fields):
        self.finished = bytes(built)
        # Dissected again, so that lengths and checksums are numbers.
        parsed = Ether(self.finished)
        self.v6, self.udp = IPv6 in parsed, UDP in parsed
        ip = parsed[IPv6] if self.v6 else parsed[IP]
        upper = parsed[UDP] if self.udp else parsed[TCP]
        self.l3 = len(self.finished) - len(bytes(ip))
        self.l4 = len(self.finished) - len(bytes(upper))
        self.insert = self.l4 + (6 if self.udp else 16)
        self.hdr_len = self.l4 + (8 if self.udp else upper.dataofs * 4)
        zeroed = bytearray(self.finished)
        zeroed[self.insert:self.insert + 2] = b"\0\0"
        # Over a zero field and without its own bytes scapy's checksum is that of the pseudo-header.
        proto = 17 if self.udp else 6
        length = len(self.finished) - self.l4
        pseudo = 0xFFFF ^ pseudo_checksum(ip, proto, length, self.v6)
        if not seeded:
            zeroed[self.insert:self.insert + 2] = pseudo.to_bytes(2, "big")
        if not self.v6:
            zeroed[self.l3 + 10:self.l3 + 12] = b"\xde\xad"
        self.frame = bytes(zeroed)
        self.fields = {
            "channel": channel, "l3_start": self.l3, "hdr_len": self.hdr_len, "ipv6": int(self.v6), "ip_csum": int(not self.v6),
            "csum": PARTIAL, "csum_init": pseudo if seeded else 0, "csum_begin": self.l4, "csum_insert": self.insert, **fields,
        }

    @property
    def user(self):
        return pack(TX_USER, **self.fields)


def pseudo_checksum(ip, proto, length, v6):
    """The complement of the pseudo-header's sum: scapy's checksum of `length` bytes that are all zero."""
    if v6:
        return in6_chksum(proto, ip, bytes(length))
    return in4_chksum(proto, ip, bytes(length))


def segments(payload, size, udp=False, flags="PA", seq=0xFFFFFF00, ident=0xFFFE, **fields):
    """The packets that a super-frame of this payload is to become, each written from scratch."""
    made = []
    for index, at in enumerate(range(0, len(payload), size)):
        last = at + size >= len(payload)
        kept = "".join(flag for flag in flags if (last or flag not in "FP") and (index == 0 or flag != "C"))
        values = {} if udp else {"flags": kept, "seq": (seq + at) % 2**32}
        made.append(packet(payload[at:at + size], udp=udp, id=(ident + index) % 2**16, **values, **fields))
    return made


__all__ = ["Asked", "FULL", "NONE", "PARTIAL", "SEG_NONE", "SEG_TCP", "SEG_UDP", "TX_USER", "pack", "packet", "segments", "unpack"]
