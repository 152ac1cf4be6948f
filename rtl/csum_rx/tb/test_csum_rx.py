"""csum_rx: directed frames of every status, and random ones, against the checksums that scapy makes."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from scapy.all import ICMP, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw, fragment, raw
from scapy.layers.inet6 import (
    IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import RX_USER, Streams, last_user, pack, run_block, unpack  # noqa: E402

UNCHECKED, IP_GOOD, TCP_GOOD, UDP_GOOD, IP_BAD, TCP_BAD, UDP_BAD = 0, 1, 2, 3, 5, 6, 7


def ether(**fields):
    """With addresses: scapy asks the network for those it does not know."""
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", **fields)


TAGS = [ether(), ether() / Dot1Q(vlan=7), ether(type=0x88A8) / Dot1AD(vlan=9) / Dot1Q(vlan=7)]
V4, V6 = IP(src="192.0.2.1", dst="198.51.100.7"), IPv6(src="2001:db8::1", dst="2001:db8::2:7")


def raw_sum(data):
    """From the 15th byte on, by the definition."""
    data = data[14:] + bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at:at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def padded(packet, length=60):
    return raw(packet).ljust(length, b"\xa5")


def flipped(packet, at, bits=1):
    data = bytearray(raw(packet))
    data[at] ^= bits
    return bytes(data)


def directed():
    """Frames and what is to be said of them."""
    text = Raw(b"x" * 41)
    for tags in TAGS:
        ip = len(raw(tags / V4)) - 20
        for version, header in ((V4, 20), (V6, 40)):
            tcp, udp = tags / version / TCP(options=[("Timestamp", (1, 2))]) / text, tags / version / UDP() / text
            yield raw(tcp), TCP_GOOD
            yield raw(udp), UDP_GOOD
            yield raw(tcp) + b"\xff\xff\xff", TCP_GOOD  # padding does not count
            yield flipped(tcp, ip + header + 9), TCP_BAD
            yield flipped(udp, -1, 0x80), UDP_BAD
            yield raw(tcp)[:-1], UNCHECKED
            for length in range(8):
                yield padded(tags / version / UDP() / Raw(bytes(range(length)))), UDP_GOOD
                yield padded(tags / version / TCP() / Raw(bytes(range(length)))), TCP_GOOD
            yield padded(tags / version / UDP(chksum=0) / text), UDP_GOOD if version is V4 else UDP_BAD
            yield padded(tags / version / UDP(len=7) / text), IP_GOOD
            yield padded(tags / version / UDP(len=50) / text), IP_GOOD  # beyond the packet
            yield padded(tags / version / TCP()), TCP_GOOD
            yield padded(tags / version), IP_GOOD  # nothing above it
        yield padded(tags / V4 / ICMP() / text), IP_GOOD
        yield flipped(tags / V4 / TCP() / text, ip + 8), IP_BAD
        yield padded(ether(type=0x806) / Raw(bytes(28))), UNCHECKED


def malformed():
    text = Raw(b"y" * 50)
    yield raw(ether() / Dot1Q() / Dot1Q() / Dot1Q() / V4 / TCP()), UNCHECKED  # a tag too many
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, version=5, ihl=5) / TCP() / text), UNCHECKED
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, ihl=4) / TCP() / text), UNCHECKED
    yield padded(ether() / IP(src=V4.src, dst=V4.dst, len=19) / TCP() / text), UNCHECKED
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, len=2000) / TCP() / text), UNCHECKED
    yield padded(ether() / IP(src=V4.src, dst=V4.dst, len=20, proto=6)), IP_GOOD
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, len=20, proto=6)), IP_GOOD  # it ends with the frame
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, len=39) / TCP()), IP_GOOD  # 19 bytes of TCP
    yield raw(ether(type=0x86DD) / V4 / TCP() / text), UNCHECKED
    yield raw(ether() / V6 / TCP())[:30], UNCHECKED
    for length in (1, 7, 8, 9, 13, 14, 15, 16, 33, 34):
        yield raw(ether() / V4 / TCP() / text)[:length], UNCHECKED


def chains():
    text = Raw(b"z" * 33)
    yield raw(ether() / IP(src=V4.src, dst=V4.dst, options=[b"\x01" * 40]) / TCP() / text), TCP_GOOD
    hop, dest = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"0" * 9)]), IPv6ExtHdrDestOpt(options=[PadN(optdata=b"1" * 20)])
    yield raw(ether() / V6 / hop / dest / TCP() / text), TCP_GOOD
    yield raw(ether() / V6 / hop / dest / UDP() / text), UDP_GOOD
    # Seven are walked over, the eighth is one too many.
    for count, due in ((7, UDP_GOOD), (8, UNCHECKED)):
        packet = V6
        for _ in range(count):
            packet = packet / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"1" * 4)])
        yield raw(ether() / packet / UDP() / text), due
    yield raw(ether() / V6 / IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=1) / TCP() / text), IP_GOOD
    yield raw(ether() / V6 / IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=0) / TCP(chksum=1) / text), TCP_BAD
    yield raw(ether() / V6 / IPv6ExtHdrFragment(offset=5, m=1) / TCP() / text), IP_GOOD
    yield raw(ether() / V6 / IPv6ExtHdrFragment(offset=0, m=0) / TCP(chksum=1) / text), TCP_BAD  # atomic
    for part in fragment(V4 / UDP() / Raw(b"f" * 600), fragsize=200):
        yield raw(ether() / part), IP_GOOD
    for header in (V4, V6):
        yield raw(ether() / header / TCP() / Raw(bytes(range(256)) * 35)), TCP_GOOD
        yield raw(ether() / header / UDP() / Raw(b"\xff" * 8_951)), UDP_GOOD


def randoms(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        layer4, good, bad = chance.choice([(TCP(), TCP_GOOD, TCP_BAD), (UDP(), UDP_GOOD, UDP_BAD)])
        layer4.sport, layer4.dport = chance.randrange(1, 65536), chance.randrange(1, 65536)
        packet = chance.choice(TAGS) / chance.choice([V4, V6]) / layer4 / Raw(chance.randbytes(chance.randrange(300)))
        data = bytearray(padded(packet))
        if chance.randrange(4) == 0:
            # A bit of a port.
            at = raw(packet).index(raw(packet[type(layer4)]))
            data[at + chance.randrange(4)] ^= 1 << chance.randrange(8)
            good = bad
        yield bytes(data), good


async def check(dut, frames, pause=0, enable=1):
    frames = list(frames)
    bench = await Streams.start(dut)
    dut.cfg_enable.value = enable
    if pause:
        bench.pause(1, pause)
    for number, (data, _) in enumerate(frames):
        await bench.send(data, pack(RX_USER, error=number & 1, csum_status=5, csum_raw=0x5A5A, arrival=number, hash=7))
    for number, (data, due) in enumerate(frames):
        out = await bench.sink.recv(compact=False)
        fields = unpack(RX_USER, last_user(out))
        keep = [byte for byte, kept in zip(out.tdata, out.tkeep) if kept]
        assert bytes(keep) == data, f"frame {number} changed"
        assert (fields["error"], fields["arrival"], fields["hash"]) == (number & 1, number, 7)
        assert fields["csum_status"] == (due if enable else 0), f"frame {number}: {fields['csum_status']}, {data.hex()}"
        assert fields["csum_raw"] == raw_sum(data), f"frame {number}: {data.hex()}"


@cocotb.test()
async def says_what_is_to_be_said(dut):
    await check(dut, [*directed(), *malformed(), *chains()])


@cocotb.test()
async def says_the_same_with_pauses(dut):
    await check(dut, [*list(directed())[:30], *malformed(), *randoms(3, 150)], pause=40)


@cocotb.test()
async def says_nothing_when_it_is_off(dut):
    await check(dut, list(randoms(4, 20)), enable=0)


@cocotb.test()
async def the_smallest_frames_pass_without_a_bubble(dut):
    bench = await Streams.start(dut)
    dut.cfg_enable.value = 1
    data = padded(ether() / V4 / TCP())
    count, beats = 100, -(-len(data) // (len(dut.s_axis_tdata) // 8))
    for _ in range(count):
        await bench.send(data)
    while not (dut.m_axis_tvalid.value and dut.m_axis_tlast.value):
        await RisingEdge(dut.clk)
    clocks = lasts = 0
    while lasts < count - 2:
        await RisingEdge(dut.clk)
        clocks += 1
        lasts += int(dut.m_axis_tvalid.value and dut.m_axis_tlast.value)
    assert clocks == (count - 2) * beats, f"{clocks} clocks for {count - 2} frames of {beats} beats"
    await ClockCycles(dut.clk, 4)


@pytest.mark.parametrize("width", [32, 64, 512])
def test_csum_rx(width):
    run_block("csum_rx", "test_csum_rx", {"DATA_W": width})
