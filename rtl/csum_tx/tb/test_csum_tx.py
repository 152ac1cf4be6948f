"""csum_tx: frames whose checksums are left to it come out as scapy writes them; requests that are not sound change nothing."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import Streams, last_user, run_block  # noqa: E402
from transmit import FULL, NONE, Asked, packet  # noqa: E402

LIMIT = 4096


async def count(dut, totals):
    """Pulses of the events, for ever."""
    while True:
        await RisingEdge(dut.clk)
        for name in ("inserted", "refused", "overlong"):
            totals[name] = totals.get(name, 0) + int(getattr(dut, f"event_{name}").value)


async def check(streams, asked, expected):
    await streams.send(asked.frame, asked.user)
    received = await streams.sink.recv()
    assert bytes(received.tdata) == expected, f"{asked.fields}\n{bytes(received.tdata).hex()}\n{expected.hex()}"
    assert last_user(received) == asked.fields["channel"]


def shapes():
    """One of each kind of packet."""
    for v6 in (False, True):
        for udp in (False, True):
            for tags in (0, 1, 2):
                for ip_extra in (0, 1, 9):
                    for seeded in (False, True):
                        yield {"v6": v6, "udp": udp, "tags": tags, "ip_extra": ip_extra}, seeded


@cocotb.test()
async def every_shape_and_length(dut):
    streams = await Streams.start(dut)
    chance = random.Random(1)
    for shape, seeded in shapes():
        await check(streams, asked := Asked(packet(chance.randbytes(chance.randrange(40)), **shape), seeded), asked.finished)
    lengths = [*range(0, 20), 1460, 1459, LIMIT - 54 - 1, LIMIT - 54]
    for length in lengths:
        await check(streams, asked := Asked(packet(chance.randbytes(length))), asked.finished)


@cocotb.test()
async def a_udp_checksum_of_zero_is_sent_as_ones(dut):
    streams = await Streams.start(dut)
    for v6 in (False, True):
        built = bytearray(bytes(packet(b"\0\0abcd", v6=v6, udp=True)))
        # With the checksum as payload the sum is all ones.
        at = len(built) - 6
        built[at:at + 2] = built[at - 2:at]
        asked = Asked(bytes(packet(bytes(built[at:]), v6=v6, udp=True)))
        assert asked.finished[at - 2:at] == b"\xff\xff", "scapy does as RFC 768 says"
        await check(streams, asked, asked.finished)


@cocotb.test()
async def what_is_not_asked_for_or_not_sound_passes_unchanged(dut):
    streams = await Streams.start(dut)
    totals = {}
    cocotb.start_soon(count(dut, totals))
    plain = packet(b"x" * 30)
    cases = [
        {"csum": FULL}, {"csum": 3}, {"csum_begin": 35}, {"csum_insert": 51}, {"csum_insert": 84}, {"csum_insert": 83},
        {"csum_insert": 32}, {"csum_begin": 0, "csum_insert": 2, "ip_csum": 0}, {"csum_begin": 32}, {"csum_begin": 12},
        {"csum_insert": 50 + 2**15}, {"csum_begin": 34 + 2**12}, {"l3_start": 15}, {"l3_start": 200}, {"l3_start": 66, "csum": NONE},
    ]
    for fields in cases:
        asked = Asked(plain, **fields)
        await check(streams, asked, asked.frame)
    assert totals == {"inserted": 0, "refused": len(cases), "overlong": 0}
    asked = Asked(plain, csum=NONE, ip_csum=0)
    await check(streams, asked, asked.frame)
    # Longer than the storage.
    for length in (LIMIT - 53, 9000):
        asked = Asked(packet(bytes(length)))
        await check(streams, asked, asked.frame)
    await check(streams, asked := Asked(plain), asked.finished)
    assert totals == {"inserted": 1, "refused": len(cases), "overlong": 2}


@cocotb.test()
async def minimum_frames_back_to_back(dut):
    """60 bytes are eight beats of eight bytes: a frame each eight clocks (10.5 would carry 14.88 Mpps)."""
    streams = await Streams.start(dut)
    frames = 40
    asked = [Asked(packet(bytes([index] * 6))) for index in range(frames)]
    for one in asked:
        await streams.send(one.frame, one.user)
    beats, valid = -(-60 // (len(dut.s_axis_tkeep))), []
    while sum(valid) < frames * beats:
        await RisingEdge(dut.clk)
        if int(dut.m_axis_tvalid.value) or valid:
            valid.append(int(dut.m_axis_tvalid.value))
        assert len(valid) < 10_000
    assert len(valid) == frames * beats, f"{len(valid) - frames * beats} bubbles"
    for one in asked:
        assert bytes((await streams.sink.recv()).tdata) == one.finished


@cocotb.test()
async def random_packets(dut):
    seed = 7
    streams = await Streams.start(dut)
    chance = random.Random(seed)
    for percent in (0, 30, 60):
        streams.pause(seed, percent)
        batch = []
        for _ in range(30):
            shape, seeded = chance.choice(list(shapes()))
            batch.append(Asked(packet(chance.randbytes(chance.choice([0, 7, 60, 300, 1400])), **shape), seeded))
            await streams.send(batch[-1].frame, batch[-1].user)
        for asked in batch:
            assert bytes((await streams.sink.recv()).tdata) == asked.finished, f"seed {seed}: {asked.fields}"


@pytest.mark.parametrize("width", [32, 64, 128])
def test_csum_tx(width):
    quick = ["a_udp_checksum_of_zero_is_sent_as_ones", "what_is_not_asked_for_or_not_sound_passes_unchanged", "random_packets",
             "minimum_frames_back_to_back"]
    run_block("csum_tx", "test_csum_tx", {"DATA_W": width}, None if width == 64 else quick)
