"""tx_path: super-frames come out as the frames that scapy writes one by one, checksums included."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import Streams, last_user, run_block  # noqa: E402
from transmit import SEG_TCP, SEG_UDP, Asked, packet, segments  # noqa: E402

TIMESTAMPS = [("NOP", None), ("NOP", None), ("Timestamp", (0x11223344, 0x55667788))]


def asked(chance, length, size, **shape):
    """A super-frame's request, and the frames that shall come of it."""
    payload = chance.randbytes(length)
    mode = SEG_UDP if shape.get("udp") else SEG_TCP
    one = Asked(packet(payload, **shape), chance.random() < 0.5, chance.randrange(16), seg=mode, seg_size=size)
    return one, [bytes(built) for built in segments(payload, size, **shape)]


def random_shape(chance):
    udp = chance.random() < 0.3
    options = chance.choice([(), TIMESTAMPS])
    shape = {"v6": chance.random() < 0.5, "tags": chance.randrange(3), "udp": udp, "ip_extra": chance.choice([0, 0, 1])}
    return shape if udp else {**shape, "options": options, "flags": chance.choice(["A", "PA", "FPAC", "FA"])}


@cocotb.test()
async def random_super_frames(dut):
    seed = 9
    streams = await Streams.start(dut)
    chance = random.Random(seed)
    for percent in (0, 30, 60):
        streams.pause(seed, percent)
        batch = []
        for _ in range(12):
            size = chance.choice([100, 333, 536, 1448])
            batch.append(asked(chance, chance.randrange(1, 4 * size), size, **random_shape(chance)))
            await streams.send(batch[-1][0].frame, batch[-1][0].user)
        for one, frames in batch:
            for index, frame in enumerate(frames):
                received = await streams.sink.recv()
                assert bytes(received.tdata) == frame, f"seed {seed}, segment {index} of {one.fields}"
                assert last_user(received) == one.fields["channel"]


@cocotb.test()
async def the_mac_side_stays_full(dut):
    """A super-frame of 64 KB at an MTU of 1500: from its first beat to its last there is one in each clock."""
    streams = await Streams.start(dut)
    one, frames = asked(random.Random(1), 64_000, 1448, options=TIMESTAMPS)
    await streams.send(one.frame, one.user)
    beats, valid = sum(-(-len(frame) // len(dut.s_axis_tkeep)) for frame in frames), []
    while sum(valid) < beats:
        await RisingEdge(dut.clk)
        if int(dut.m_axis_tvalid.value) or valid:
            valid.append(int(dut.m_axis_tvalid.value))
        assert len(valid) < 100_000
    assert len(valid) == beats, f"{len(valid) - beats} bubbles"
    for frame in frames:
        assert bytes((await streams.sink.recv()).tdata) == frame


@pytest.mark.parametrize("width", [64])
def test_tx_path(width):
    run_block("tx_path", "test_tx_path", {"DATA_W": width})
