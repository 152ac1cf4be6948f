"""rss: directed frames, and random ones against scapy and a Toeplitz hash of its own."""

import random
import sys
from ipaddress import ip_address
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw, fragment, raw
from scapy.layers.inet6 import (
    IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN, fragment6,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import RX_USER, Streams, last_user, pack, run_block, unpack  # noqa: E402

NONE, IPV4, TCP4, UDP4, IPV6, TCP6, UDP6 = range(7)
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
# Microsoft's verification suite: source, destination, hash of addresses, hash with ports.
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323E8FC2, 0x51CCC178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xD718262A, 0xC626B0EA),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xD2D0A5DE, 0x5C2B394A),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xAFC7327F),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5D1809C5, 0x10E828A2),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4B61E985, 0x02D1FEEF),
]


def toeplitz(key, data):
    """By the definition: for each bit that is set, the 32 bits of the key from there on."""
    bits, found = int.from_bytes(key, "big"), 0
    for index in range(8 * len(data)):
        if data[index // 8] >> (7 - index % 8) & 1:
            found ^= bits >> (8 * len(key) - 32 - index) & 0xFFFFFFFF
    return found


def padded(packet):
    return raw(packet).ljust(60, b"\xa5")


def ip(source, destination, **fields):
    return IPv6(src=source, dst=destination) if ":" in source else IP(src=source, dst=destination, **fields)


class Bench(Streams):
    """The block with Microsoft's key and a table that shows the hash's low four bits as channel."""

    @classmethod
    async def begin(cls, dut):
        bench = await cls.start(dut)
        dut.cfg_key.value = int.from_bytes(KEY, "little")
        dut.cfg_hash_tcp.value = dut.cfg_hash_udp.value = 1
        dut.cfg_default_channel.value = 9
        for word in range(16):
            await bench.write(word, 0x76543210 if word % 2 == 0 else 0xFEDCBA98)
        return bench

    async def write(self, address, data):
        self.dut.cfg_address.value, self.dut.cfg_data.value, self.dut.cfg_write.value = address, data, 1
        await RisingEdge(self.dut.clk)
        self.dut.cfg_write.value = 0

    async def write_rule(self, number, action, source=None, destination=None, protocol=None, sport=None, dport=None, version=None):
        """A rule from text, laid out as the block's page says it; the addresses may have a prefix length."""
        value = care = 0  # 288 bits of addresses and ports, the first highest

        def put(at, width, number, mask):
            nonlocal value, care
            value |= (number & mask) << (288 - at - width)
            care |= mask << (288 - at - width)

        for network, is_destination in ((source, 0), (destination, 1)):
            if network is not None:
                address, _, prefix = network.partition("/")
                address = ip_address(address)
                version, width = address.version, address.max_prefixlen
                mask = (1 << width) - (1 << (width - int(prefix or width)))
                put(is_destination * width, width, int(address), mask)
        beside_value = beside_care = 0  # 32 bits
        if sport is not None:
            put(256, 16, sport, 0xFFFF)
        if dport is not None:
            put(272, 16, dport, 0xFFFF)
        if sport is not None or dport is not None:
            beside_value, beside_care = 1 << 22, 1 << 22
        if protocol is not None:
            beside_value, beside_care = beside_value | protocol << 24, beside_care | 0xFF << 24
        if version is not None:
            beside_value, beside_care = beside_value | (version == 6) << 23, beside_care | 1 << 23
        for step in range(8):
            words = []
            for wide, beside in ((value, beside_value), (care, beside_care)):
                low = wide >> (252 - 36 * step) & (1 << 36) - 1
                words.append((beside >> (28 - 4 * step) & 15) << 36 | low)
            at = 0x400 + 32 * number + 4 * step
            await self.write(at, words[0] & 0xFFFFFFFF)
            await self.write(at + 1, words[1] & 0xFFFFFFFF)
            await self.write(at + 2, words[1] >> 32 << 8 | words[0] >> 32)
        await self.write(0xA0 + number, action)

    async def commit(self):
        await self.write(0xC0, 0)
        for _ in range(12_000):
            await RisingEdge(self.dut.clk)
            if self.dut.rules_busy.value == 0:
                return
        raise AssertionError("busy for ever")

    async def look_up(self, packet):
        """(hash, type, channel, drop) of one frame, which comes out unchanged."""
        data = padded(packet)
        passed = dict(error=1, csum_status=5, csum_raw=0xBEEF, seg_count=1, seg_size=3, arrival=0x12345678)
        await self.send(data, pack(RX_USER, **passed, hash=0xFFFFFFFF, channel=15, hash_type=7))
        frame = await self.sink.recv()
        assert bytes(frame.tdata) == data
        user = unpack(RX_USER, last_user(frame))
        assert {name: user[name] for name in passed} == passed
        return user["hash"], user["hash_type"], user["channel"], user["drop"]

    async def expect(self, packet, found, kind):
        """By hash."""
        assert await self.look_up(packet) == (found, kind, found & 15 if kind else 9, 0), packet.summary()


@cocotb.test()
async def microsofts_vectors(dut):
    bench = await Bench.begin(dut)
    for source, sport, destination, dport, addresses, ports in VECTORS:
        v6 = ":" in source
        header = ip(source, destination)
        tcp, udp = TCP(sport=sport, dport=dport), UDP(sport=sport, dport=dport)
        await bench.expect(Ether() / header / tcp / b"x", ports, TCP6 if v6 else TCP4)
        await bench.expect(Ether() / header / udp / b"xy", ports, UDP6 if v6 else UDP4)
        await bench.expect(Ether() / ip(source, destination) / Raw(b"12345678"), addresses, IPV6 if v6 else IPV4)
    dut.cfg_hash_tcp.value = 0
    for source, sport, destination, dport, addresses, ports in VECTORS:
        v6 = ":" in source
        await bench.expect(Ether() / ip(source, destination) / TCP(sport=sport, dport=dport), addresses, IPV6 if v6 else IPV4)
        await bench.expect(Ether() / ip(source, destination) / UDP(sport=sport, dport=dport), ports, UDP6 if v6 else UDP4)
    dut.cfg_hash_tcp.value, dut.cfg_hash_udp.value = 1, 0
    for source, sport, destination, dport, addresses, ports in VECTORS:
        v6 = ":" in source
        await bench.expect(Ether() / ip(source, destination) / TCP(sport=sport, dport=dport), ports, TCP6 if v6 else TCP4)
        await bench.expect(Ether() / ip(source, destination) / UDP(sport=sport, dport=dport), addresses, IPV6 if v6 else IPV4)


@cocotb.test()
async def all_fragments_of_a_datagram_go_to_one_queue(dut):
    bench = await Bench.begin(dut)
    source, sport, destination, dport, addresses, _ = VECTORS[0]
    datagram = IP(src=source, dst=destination) / UDP(sport=sport, dport=dport) / Raw(bytes(4000))
    pieces = fragment(datagram, 1000)
    assert len(pieces) == 5
    for piece in pieces:
        await bench.expect(Ether() / piece, addresses, IPV4)
    source, sport, destination, dport, addresses, ports = VECTORS[5]
    header = IPv6(src=source, dst=destination) / IPv6ExtHdrFragment(id=7) / UDP(sport=sport, dport=dport) / Raw(bytes(4000))
    pieces = fragment6(header, 1280)
    assert len(pieces) == 4
    for piece in pieces:
        await bench.expect(Ether() / piece, addresses, IPV6)
    # An atomic fragment is a whole packet (RFC 6946).
    atomic = IPv6(src=source, dst=destination) / IPv6ExtHdrFragment(id=7) / UDP(sport=sport, dport=dport)
    await bench.expect(Ether() / atomic, ports, UDP6)


@cocotb.test()
async def tags_options_and_extensions_change_nothing(dut):
    bench = await Bench.begin(dut)
    for source, sport, destination, dport, _, ports in VECTORS:
        v6 = ":" in source
        inner = ip(source, destination)
        if v6:
            inner = inner / IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(12))]) / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting()
        else:
            inner.options = [b"\x01"] * 12
        inner = inner / TCP(sport=sport, dport=dport) / Raw(b"abc")
        kind = TCP6 if v6 else TCP4
        await bench.expect(Ether() / inner, ports, kind)
        await bench.expect(Ether() / Dot1Q(vlan=5, prio=7) / inner, ports, kind)
        await bench.expect(Ether() / Dot1AD(vlan=9) / Dot1Q(vlan=5) / inner, ports, kind)
        assert await bench.look_up(Ether() / Dot1Q() / Dot1Q() / Dot1Q() / inner) == (0, NONE, 9, 0)


@cocotb.test()
async def malformed_frames_and_padding(dut):
    bench = await Bench.begin(dut)
    source, sport, destination, dport, addresses, ports = VECTORS[1]
    good = raw(Ether() / IP(src=source, dst=destination) / UDP(sport=sport, dport=dport))
    await bench.expect(Ether(good), ports, UDP4)

    async def changed(at, value, expected):
        frame = bytearray(good)
        frame[at] = value
        found = await bench.look_up(Raw(bytes(frame)))
        assert found == expected, (at, value, found)

    nothing, two = (0, NONE, 9, 0), (addresses, IPV4, addresses & 15, 0)
    await changed(14, 0x44, nothing)  # a header shorter than itself
    await changed(14, 0x65, nothing)  # IPv6 in a frame of IPv4
    await changed(14, 0x4F, nothing)  # a header longer than the packet
    await changed(16, 1, nothing)  # a packet longer than the frame
    await changed(17, 19, nothing)  # a packet shorter than its header
    await changed(17, 23, two)  # a packet that ends in its ports; padding is none
    await changed(17, 24, (ports, UDP4, ports & 15, 0))
    await changed(23, 132, two)
    await changed(23, 1, two)
    await changed(20, 0x40, (ports, UDP4, ports & 15, 0))  # do not fragment
    assert await bench.look_up(Ether() / ARP()) == nothing
    for length in (1, 13, 14, 20, 33):
        await bench.send(good[:length])
        assert unpack(RX_USER, last_user(await bench.sink.recv()))["hash_type"] == NONE
    await bench.expect(Ether() / IP(src=source, dst=destination) / UDP(sport=sport, dport=dport) / Raw(bytes(8972)), ports, UDP4)


@cocotb.test()
async def rules_then_ports_then_the_hash(dut):
    bench = await Bench.begin(dut)
    source, sport, destination, dport, addresses, ports = VECTORS[0]
    four = Ether() / IP(src=source, dst=destination) / TCP(sport=sport, dport=dport)
    # A fragment of the same flow, the first one.
    first = Ether() / fragment(IP(src=source, dst=destination) / TCP(sport=sport, dport=dport) / Raw(bytes(200)), 100)[0]
    six = Ether() / IPv6(src=VECTORS[5][0], dst=VECTORS[5][2]) / UDP(sport=2794, dport=1766)

    async def channel(packet):
        return (await bench.look_up(packet))[2:]

    # The port map: TCP and UDP of both versions, no fragments; the first entry counts.
    await bench.write(0x80 + 3, 12 << 16 | dport)
    await bench.write(0x80 + 4, 13 << 16 | dport)
    assert await channel(four) == (ports & 15, 0)
    dut.cfg_port_enable.value = 1 << 4
    assert await channel(four) == (13, 0)
    dut.cfg_port_enable.value = 1 << 3 | 1 << 4
    assert await channel(four) == (12, 0) and await channel(six) == (12, 0)
    assert await channel(first) == (addresses & 15, 0)
    # Rules: whatever is not named may be anything; the lowest number counts.
    await bench.write_rule(31, 1, source, destination, 6, sport, dport)
    await bench.write_rule(20, 0x12, version=6)
    await bench.write_rule(7, 3, dport=dport)
    await bench.write_rule(6, 4, source="66.9.128.0/17")
    await bench.write_rule(5, 5, source=source, destination=destination, protocol=6, sport=sport, dport=dport + 1)
    await bench.write_rule(0, 6)
    await bench.commit()
    assert await channel(four) == (12, 0)
    for enabled, of_four, of_first, of_six in [
        (1 << 31, (1, 0), (addresses & 15, 0), (12, 0)),
        (1 << 31 | 1 << 20, (1, 0), (addresses & 15, 0), (2, 1)),
        (1 << 31 | 1 << 20 | 1 << 7, (3, 0), (addresses & 15, 0), (3, 0)),
        (1 << 31 | 1 << 20 | 1 << 7 | 1 << 6, (4, 0), (4, 0), (3, 0)),
        (1 << 5, (12, 0), (addresses & 15, 0), (12, 0)),
        (0xFFFFFFFE & (1 << 5 | 1), (12, 0), (addresses & 15, 0), (12, 0)),
        (1 << 31 | 1, (6, 0), (6, 0), (6, 0)),
    ]:
        dut.cfg_rule_enable.value = enabled
        assert await channel(four) == of_four and await channel(first) == of_first and await channel(six) == of_six, hex(enabled)
    # Rules are about IP alone.
    assert await channel(Ether() / ARP()) == (9, 0)
    # Hash and type are told all the same.
    assert await bench.look_up(four) == (ports, TCP4, 6, 0)


@cocotb.test()
async def rules_are_rewritten_while_frames_pass(dut):
    bench = await Bench.begin(dut)
    flow = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2)
    await bench.write_rule(4, 11, dport=2)
    await bench.commit()
    dut.cfg_rule_enable.value = 1 << 4
    for _ in range(1100):
        await bench.send(padded(flow))
    await bench.write_rule(3, 10, destination="10.0.0.2")
    await bench.commit()
    assert bench.sink.count() > 800
    for _ in range(1100):
        assert unpack(RX_USER, last_user(await bench.sink.recv()))["channel"] == 11
    dut.cfg_rule_enable.value = 1 << 3
    assert (await bench.look_up(flow))[2] == 10


@cocotb.test()
async def minimum_frames_pass_without_a_bubble(dut):
    bench = await Bench.begin(dut)
    beats = -(-60 // (len(dut.s_axis_tdata) // 8))
    clocks = max(beats, 8)
    count = 100
    for index in range(count):
        packet = Ether() / IPv6(src="fe80::1", dst="fe80::2") if index % 2 else Ether() / IP() / TCP(sport=index)
        await bench.send(padded(packet)[:60])
    waited, ends = 0, []
    while len(ends) < count and waited < clocks * count + 100:
        await RisingEdge(dut.clk)
        waited += 1
        if dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1 and dut.m_axis_tlast.value == 1:
            ends.append(waited)
    assert len(ends) == count
    # 60 bytes without FCS in 8 clocks; at 10 Gb/s they come every 10.5.
    assert all(after - before == clocks for before, after in zip(ends[1:], ends[2:])), ends[:20]


def random_packet(chance):
    """A packet and what scapy reads in it."""
    addresses = [str(ip_address(chance.getrandbits(32))) for _ in range(2)]
    header = IP(src=addresses[0], dst=addresses[1], flags=chance.choice(["", "DF"]))
    if chance.random() < 0.5:
        addresses = [str(ip_address(chance.getrandbits(128))) for _ in range(2)]
        header = IPv6(src=addresses[0], dst=addresses[1])
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            extension = chance.choice([IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt])
            header = header / extension(options=[PadN(optdata=bytes(chance.randrange(40)))])
    elif chance.random() < 0.2:
        header.options = [b"\x01"] * 4 * chance.randrange(1, 10)
    kind = chance.choice([TCP, TCP, UDP, UDP, ICMP])
    upper = kind() if kind == ICMP else kind(sport=chance.getrandbits(16), dport=chance.getrandbits(16))
    tags = [Dot1AD(), Dot1Q()][2 - chance.choice([0, 0, 0, 1, 2]):]
    packet = Ether()
    for tag in tags:
        packet = packet / tag
    return raw(packet / header / upper / Raw(chance.randbytes(chance.choice([0, 1, 3, 20, 100, chance.randrange(1400)]))))


def expected_by_scapy(data, key):
    packet = Ether(data)
    layer = packet.getlayer(IP) or packet.getlayer(IPv6)
    v6 = isinstance(layer, IPv6)
    hashed = ip_address(layer.src).packed + ip_address(layer.dst).packed
    for upper, kind in ((TCP, TCP6 if v6 else TCP4), (UDP, UDP6 if v6 else UDP4)):
        if upper in packet:
            ports = packet[upper].sport.to_bytes(2, "big") + packet[upper].dport.to_bytes(2, "big")
            return toeplitz(key, hashed + ports), kind
    return toeplitz(key, hashed), IPV6 if v6 else IPV4


@cocotb.test()
async def random_frames(dut):
    seed = 11
    bench = await Bench.begin(dut)
    chance = random.Random(seed)
    for percent in (0, 30, 60):
        bench.pause(seed, percent)
        key = chance.randbytes(40)
        dut.cfg_key.value = int.from_bytes(key, "little")
        frames = [random_packet(chance) for _ in range(40)]
        for frame in frames:
            await bench.send(frame)
        for frame in frames:
            received = await bench.sink.recv()
            user = unpack(RX_USER, last_user(received))
            expected = expected_by_scapy(frame, key)
            assert bytes(received.tdata) == frame
            assert (user["hash"], user["hash_type"]) == expected, f"seed {seed}: {frame.hex()}"
            assert user["channel"] == expected[0] & 15
    await ClockCycles(dut.clk, 1)


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_rss(width):
    # The lookup does not depend on the width.
    stream = ["microsofts_vectors", "malformed_frames_and_padding", "minimum_frames_pass_without_a_bubble", "random_frames"]
    run_block("rss", "test_rss", {"DATA_W": width}, None if width == 64 else stream)
