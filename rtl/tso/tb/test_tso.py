"""tso: segments are those that scapy writes one by one, checksum fields aside; what is not as told is dropped or cut, and counted."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import Streams, last_user, run_block  # noqa: E402
from transmit import SEG_TCP, SEG_UDP, TX_USER, Asked, pack, packet, segments, unpack  # noqa: E402

TIMESTAMPS = [("NOP", None), ("NOP", None), ("Timestamp", (0x11223344, 0x55667788))]


def ones_add(*numbers):
    total = sum(numbers)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Super:
    """A super-frame, and what must become of it."""

    def __init__(self, payload, size, seeded=False, **shape):
        udp = shape.get("udp", False)
        asked = Asked(packet(payload, **shape), seeded, seg=SEG_UDP if udp else SEG_TCP, seg_size=size)
        self.frame, self.fields, self.size = asked.frame, asked.fields, size
        self.expected = []
        whole = len(self.frame) - asked.l4
        for built in segments(payload, size, **shape):
            data = bytearray(bytes(built))
            # Left to csum_tx.
            data[asked.insert:asked.insert + 2] = self.frame[asked.insert:asked.insert + 2]
            if not asked.v6:
                data[asked.l3 + 10:asked.l3 + 12] = self.frame[asked.l3 + 10:asked.l3 + 12]
            seed = ones_add(self.fields["csum_init"], 0xFFFF ^ whole, len(data) - asked.l4)
            user = {**self.fields, "seg": 0, "seg_size": 0, "hdr_len": 0, "csum_init": seed}
            self.expected.append((bytes(data), user))

    @property
    def user(self):
        return pack(TX_USER, **self.fields)


async def check(streams, superframe):
    await streams.send(superframe.frame, superframe.user)
    await received(streams, superframe)


async def received(streams, superframe):
    for index, (data, user) in enumerate(superframe.expected):
        frame = await streams.sink.recv()
        assert bytes(frame.tdata) == data, f"segment {index} of {superframe.fields}"
        assert unpack(TX_USER, last_user(frame)) == user


async def count(dut, totals):
    """Pulses of the events, for ever."""
    while True:
        await RisingEdge(dut.clk)
        for name in ("super", "segment", "malformed", "length"):
            totals[name] = totals.get(name, 0) + int(getattr(dut, f"event_{name}").value)


@cocotb.test()
async def every_shape(dut):
    streams = await Streams.start(dut)
    chance = random.Random(1)
    for v6 in (False, True):
        for tags in (0, 1, 2):
            for ip_extra in (0, 1):
                for options in ((), TIMESTAMPS):
                    shape = {"v6": v6, "tags": tags, "ip_extra": ip_extra, "options": options, "flags": "FPAC"}
                    await check(streams, Super(chance.randbytes(chance.randrange(1, 900)), 300, chance.random() < 0.5, **shape))
                await check(streams, Super(chance.randbytes(700), 300, v6=v6, tags=tags, udp=True))


@cocotb.test()
async def every_remainder(dut):
    """Payload of every length about a multiple of the segment's, segments of every length modulo a beat."""
    streams = await Streams.start(dut)
    chance = random.Random(2)
    for size in (1, 7, 8, 9, *range(60, 70)):
        for length in (1, size, size + 1, 3 * size - 1, 3 * size):
            await check(streams, Super(chance.randbytes(length), size))


@cocotb.test()
async def the_largest(dut):
    streams = await Streams.start(dut)
    await check(streams, Super(bytes(range(256)) * 255, 1448, options=TIMESTAMPS))
    await check(streams, Super(random.Random(3).randbytes(65535 - 40), 8960))


@cocotb.test()
async def what_is_not_as_told(dut):
    streams = await Streams.start(dut)
    totals = {}
    cocotb.start_soon(count(dut, totals))
    sound = Super(bytes(250), 100)
    wrong = [
        {"seg_size": 0}, {"seg": 3}, {"seg": SEG_UDP}, {"csum": 0}, {"hdr_len": 0}, {"hdr_len": 50}, {"hdr_len": 58}, {"hdr_len": 129},
        {"hdr_len": 255}, {"l3_start": 15}, {"l3_start": 18}, {"l3_start": 255}, {"ipv6": 1}, {"csum_begin": 38}, {"csum_begin": 35},
        {"csum_begin": 34 + 256}, {"csum_insert": 40},
    ]
    for fields in wrong:
        await streams.send(sound.frame, pack(TX_USER, **{**sound.fields, **fields}))
    # Not even one byte of payload.
    for length in (1, 20, 53, 54):
        await streams.send(sound.frame[:length], sound.user)
    # A fragment, another protocol, a data offset that is not the header's.
    for at, value in ((20, 0x20), (23, 17), (46, 0x60), (46, 0x40), (14, 0x46)):
        frame = bytearray(sound.frame)
        frame[at] = value
        await streams.send(bytes(frame), sound.user)
    await check(streams, sound)
    assert totals == {"super": 1, "segment": 3, "malformed": len(wrong) + 9, "length": 0}
    # More than the header says, and less: in the third, at the end of the second, in the second.
    for length, cut in ((260, [100, 100, 50]), (249, [100, 100, 49]), (200, [100, 100]), (110, [100, 10])):
        await streams.send((sound.frame + bytes(10))[:54 + length], sound.user)
        for (data, _), kept in zip(sound.expected, cut):
            assert bytes((await streams.sink.recv()).tdata) == data[:54 + kept]
    await check(streams, sound)
    assert totals["length"] == 4 and totals["super"] == 6 and totals["segment"] == 3 + 3 + 3 + 2 + 2 + 3


@cocotb.test()
async def no_bubble(dut):
    """In a super-frame at an MTU of 1500 a beat leaves in each clock; small frames that are not segmented likewise."""
    streams = await Streams.start(dut)
    width = len(dut.s_axis_tkeep)
    superframe = Super(bytes(20_000), 1448, options=TIMESTAMPS)
    small = [Asked(packet(bytes([index] * 6)), csum=0) for index in range(30)]
    for frames, beats in (
        ([superframe], sum(-(-len(data) // width) for data, _ in superframe.expected)),
        (small, len(small) * -(-60 // width)),
    ):
        for frame in frames:
            await streams.send(frame.frame, frame.user)
        valid = []
        while sum(valid) < beats:
            await RisingEdge(dut.clk)
            if int(dut.m_axis_tvalid.value) or valid:
                valid.append(int(dut.m_axis_tvalid.value))
            assert len(valid) < 100_000
        assert len(valid) == beats, f"{len(valid) - beats} bubbles"
        while streams.sink.count() > 0:
            streams.sink.recv_nowait()
        await RisingEdge(dut.clk)
    streams.sink.clear()


@cocotb.test()
async def random_super_frames(dut):
    seed = 5
    streams = await Streams.start(dut)
    chance = random.Random(seed)
    for percent in (0, 30, 60):
        streams.pause(seed, percent)
        batch = []
        for _ in range(12):
            shape = {"v6": chance.random() < 0.5, "tags": chance.randrange(3), "udp": chance.random() < 0.3}
            size = chance.choice([100, 333, 536, 1448])
            batch.append(Super(chance.randbytes(chance.randrange(1, 4 * size)), size, chance.random() < 0.5, **shape))
            await streams.send(batch[-1].frame, batch[-1].user)
        for superframe in batch:
            await received(streams, superframe)


@pytest.mark.parametrize("width", [64, 128])
def test_tso(width):
    quick = ["every_remainder", "no_bubble", "random_super_frames", "what_is_not_as_told"]
    run_block("tso", "test_tso", {"DATA_W": width}, None if width == 64 else quick)
