"""rgmii_mac: preamble, padding, check sequence and gap against zlib; damaged frames are marked and counted; three clocks."""

import random
import sys
import zlib
from collections import deque
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import last_user, pauses, run_block  # noqa: E402

LEAD = bytes([0x55] * 7 + [0xD5])
COUNTS = ["sent", "underrun", "received", "error", "runt", "dropped"]
LENGTHS = [*range(60, 77), 124, 125, 128, 511, 1000, 1513, 1514, 9014]


def check(data):
    """The check sequence, as it is sent."""
    return zlib.crc32(data).to_bytes(4, "little")


def frame(length, seed=0):
    """So many bytes, others for each seed."""
    return random.Random(length * 1000 + seed).randbytes(length)


class Bench:
    """The MAC with a PHY in Python: `seen` is what was sent, `line` what it is to receive, a tuple (byte or none, error) for each clock."""

    @classmethod
    async def begin(cls, dut, system_ps=20_000, receive_ps=8_002):
        self = cls()
        self.dut, self.seen, self.line, self.loops = dut, [], deque(), False
        for side in ("", "tx_", "rx_"):
            getattr(dut, f"{side}rst").value = 1
        for name in ("rx_dv", "rx_er", "rxd"):
            getattr(dut, name).value = 0
        Clock(dut.clk, system_ps, "ps").start()
        Clock(dut.tx_clk, 8_000, "ps").start()
        Clock(dut.rx_clk, receive_ps, "ps").start()
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for stream in (self.source, self.sink):
            stream.log.setLevel("WARNING")
        await ClockCycles(dut.clk, 5)
        for side in ("", "tx_", "rx_"):
            getattr(dut, f"{side}rst").value = 0
        await ClockCycles(dut.clk, 5)
        cocotb.start_soon(self.watch())
        cocotb.start_soon(self.drive())
        return self

    async def watch(self):
        """Every frame that is sent: its bytes with preamble, whether it had an error, and the clocks of nothing before it."""
        gap, data, error = 0, bytearray(), False
        while True:
            await RisingEdge(self.dut.tx_clk)
            if self.dut.tx_en.value == 1:
                data.append(int(self.dut.txd.value))
                error |= self.dut.tx_er.value == 1
            else:
                if data:
                    self.seen.append((bytes(data), error, gap))
                    if self.loops:
                        self.receive(bytes(data), lead=b"")
                    gap, data, error = 0, bytearray(), False
                gap += 1

    async def drive(self):
        """A byte in each clock of the receiving side."""
        idle = True
        while True:
            await RisingEdge(self.dut.rx_clk)
            if self.line:
                byte, error = self.line.popleft()
                self.dut.rx_dv.value = int(byte is not None)
                self.dut.rxd.value = byte or 0
                self.dut.rx_er.value = int(error)
                idle = False
            elif not idle:
                self.dut.rx_dv.value, self.dut.rx_er.value, idle = 0, 0, True

    def receive(self, data, lead=LEAD, error_at=None, gap=12):
        """Queues bytes of the line: a frame with its check sequence."""
        self.line.extend((byte, at == error_at) for at, byte in enumerate(lead + data))
        self.line.extend([(None, False)] * gap)

    async def until(self, condition, clocks=40_000):
        """Waits for something, but not forever."""
        for _ in range(clocks):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("it did not come")

    async def take(self):
        """A frame that was received, and whether it was marked."""
        came = await with_timeout(self.sink.recv(), 1, "ms")
        return bytes(came.tdata), last_user(came)

    async def counts(self):
        """All that is not zero, when it has come across."""
        await ClockCycles(self.dut.clk, 20)
        read = {name: int(getattr(self.dut, f"count_{name}").value) for name in COUNTS}
        return {name: count for name, count in read.items() if count}


@cocotb.test()
async def frames_are_sent_whole(dut):
    bench = await Bench.begin(dut)
    lengths = [1, 7, 8, 9, 59, *LENGTHS]
    for length in lengths:
        await bench.source.send(AxiStreamFrame(frame(length)))
    await bench.until(lambda: len(bench.seen) == len(lengths))
    for index, (length, (data, error, gap)) in enumerate(zip(lengths, bench.seen)):
        padded = frame(length).ljust(60, b"\0")
        assert not error and data == LEAD + padded + check(padded), length
        assert index == 0 or gap == 12, (length, gap)
    assert await bench.counts() == {"sent": len(lengths)}


@cocotb.test()
async def a_frame_waits_until_it_is_whole(dut):
    bench = await Bench.begin(dut)
    bench.source.set_pause_generator(pauses(1, 90))
    for length in (60, 900, 1000):
        await bench.source.send(AxiStreamFrame(frame(length)))
    await bench.until(lambda: len(bench.seen) == 3)
    assert [data[8:-4] for data, error, _ in bench.seen if not error] == [frame(length) for length in (60, 900, 1000)]


@cocotb.test()
async def an_empty_fifo_ends_a_frame_with_an_error(dut):
    bench = await Bench.begin(dut)
    await bench.source.send(AxiStreamFrame(frame(9014)))
    await ClockCycles(dut.clk, 300)
    bench.source.pause = True
    await bench.until(lambda: len(bench.seen) == 1)
    bench.source.pause = False
    await bench.source.send(AxiStreamFrame(frame(300)))
    await bench.until(lambda: len(bench.seen) == 2)
    data, error, _ = bench.seen[0]
    assert error and len(data) < 9014 and data[8:-1] == frame(9014)[: len(data) - 9]
    assert bench.seen[1][:2] == (LEAD + frame(300) + check(frame(300)), False)
    assert await bench.counts() == {"sent": 1, "underrun": 1}


@cocotb.test()
async def frames_are_received_whole(dut):
    bench = await Bench.begin(dut)
    for length in LENGTHS:
        bench.receive(frame(length) + check(frame(length)), gap=random.Random(length).choice([5, 12, 13]))
    # A PHY may take bytes of the preamble away.
    bench.receive(frame(64) + check(frame(64)), lead=LEAD[-1:])
    for length in [*LENGTHS, 64]:
        assert await bench.take() == (frame(length), 0), length
    assert await bench.counts() == {"received": len(LENGTHS) + 1}


@cocotb.test()
async def damaged_frames_are_marked(dut):
    bench = await Bench.begin(dut)
    good = frame(100) + check(frame(100))
    for at in (0, 50, 99, 103):
        bench.receive(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
    bench.receive(good, error_at=8)
    bench.receive(good, error_at=8 + 103)
    bench.receive(good[:-1])
    bench.receive(good)
    for _ in range(7):
        data, is_marked = await bench.take()
        assert is_marked and len(data) in (99, 100)
    assert await bench.take() == (frame(100), 0)
    # Too short, though its check sequence is right; of no more than a check sequence; no frame at all.
    bench.receive(frame(59) + check(frame(59)))
    assert await bench.take() == (frame(59), 1)
    bench.receive(check(b""))
    bench.receive(b"", lead=b"\x55\x55")
    bench.receive(good, lead=b"\x55\x57" + LEAD)
    bench.receive(good)
    assert await bench.take() == (frame(100), 0)
    assert await bench.counts() == {"received": 2, "error": 7, "runt": 2}


@cocotb.test()
async def what_finds_no_room_is_counted(dut):
    bench = await Bench.begin(dut)
    bench.sink.pause = True
    for index in range(5):
        bench.receive(frame(1514, index) + check(frame(1514, index)))
    await bench.until(lambda: not bench.line)
    bench.sink.pause = False
    whole = (8 << int(dut.DEPTH_W.value)) // 1514
    for index in range(whole):
        assert await bench.take() == (frame(1514, index), 0)
    data, is_marked = await bench.take()
    assert is_marked and len(data) < 1514
    bench.receive(frame(70) + check(frame(70)))
    assert await bench.take() == (frame(70), 0)
    assert await bench.counts() == {"received": whole + 1, "dropped": 5 - whole}


@cocotb.test()
async def a_loop_returns_what_was_sent(dut):
    """At another clock than the others', both sides with pauses."""
    bench = await Bench.begin(dut, system_ps=16_130, receive_ps=8_000)
    bench.loops = True
    bench.source.set_pause_generator(pauses(2, 30))
    bench.sink.set_pause_generator(pauses(3, 30))
    chance = random.Random(4)
    lengths = [chance.choice([60, 61, chance.randrange(60, 1515)]) for _ in range(25)]
    for index, length in enumerate(lengths):
        await bench.source.send(AxiStreamFrame(frame(length, index)))
    for index, length in enumerate(lengths):
        assert await bench.take() == (frame(length, index), 0)
    assert await bench.counts() == {"sent": 25, "received": 25}


@pytest.mark.parametrize("depth_w", [8, 9])
def test_rgmii_mac(depth_w):
    run_block("rgmii_mac", "test_rgmii_mac", {"DEPTH_W": depth_w})
