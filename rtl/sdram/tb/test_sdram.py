"""sdram: what is written is read, for all who ask; the rules of the chip, which its model checks; the clocks of a read."""

import random
import sys
from collections import deque
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import run_block  # noqa: E402

MASTERS, BEAT_W = 3, 19


class Bench:
    """Who asks, as queues of (beat, data, strobes), data none for a read; what came, with the clocks from grant to answer."""

    @classmethod
    async def begin(cls, dut):
        self = cls()
        self.dut, self.came, self.memory, self.clock = dut, [], {}, 0
        self.queues = [deque() for _ in range(MASTERS)]
        self.due = deque()
        for name in ("ask", "is_write", "beat", "data", "strobes", "load_valid"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        Clock(dut.clk, int(dut.CLK_NS.value), "ns").start()
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        cocotb.start_soon(self.run())
        return self

    def show(self):
        """The first of every queue is asked for."""
        values = dict.fromkeys(("ask", "is_write", "beat", "data", "strobes"), 0)
        for who, queue in enumerate(self.queues):
            if not queue:
                continue
            beat, data, strobes = queue[0]
            values["ask"] |= 1 << who
            values["beat"] |= beat << BEAT_W * who
            if data is not None:
                values["is_write"] |= 1 << who
                values["data"] |= data << 64 * who
                values["strobes"] |= strobes << 8 * who
        for name, value in values.items():
            getattr(self.dut, name).value = value

    async def run(self):
        while True:
            await RisingEdge(self.dut.clk)
            self.clock += 1
            self.show()
            await ReadOnly()
            come = int(self.dut.come.value)
            if come:
                who, beat, expected, granted = self.due.popleft()
                assert come == 1 << who, "the order of the answers"
                found = int(self.dut.come_data.value)
                assert found == expected, f"beat {beat:x}: {found:016x}, not {expected:016x}"
                self.came.append(self.clock - granted)
            grant = int(self.dut.grant.value)
            if grant:
                who = grant.bit_length() - 1
                assert grant == 1 << who and self.queues[who]
                assert not any(self.queues[:who]), "the lowest number first"
                self.granted(who, *self.queues[who].popleft())

    def granted(self, who, beat, data, strobes):
        before = self.memory.get(beat, 0)
        if data is None:
            self.due.append((who, beat, before, self.clock))
            return
        mask = sum(0xFF << 8 * lane for lane in range(8) if strobes >> lane & 1)
        self.memory[beat] = before & ~mask | data & mask

    async def finish(self, clocks=30_000):
        for _ in range(clocks):
            if not any(self.queues) and not self.due:
                await ClockCycles(self.dut.clk, 20)
                assert int(self.dut.faults.value) == 0, "the chip's rules"
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("no end")


def row(index, bank=0, column=0):
    """A beat by its place in the chip: columns of 8 bits, four words each."""
    return index << 8 | bank << 6 | column


@cocotb.test()
async def what_is_written_is_read(dut):
    bench = await Bench.begin(dut)
    chance = random.Random(1)
    places = [row(chance.randrange(2048), chance.randrange(4), chance.randrange(64)) for _ in range(24)]
    for beat in places:
        bench.queues[0].append((beat, chance.getrandbits(64), 0xFF))
    for _ in range(600):
        beat = chance.choice(places)
        data = chance.getrandbits(64) if chance.random() < 0.5 else None
        bench.queues[chance.randrange(MASTERS)].append((beat, data, chance.choice([0xFF, 0x0F, 0xF0, chance.getrandbits(8)])))
    # Reads of what was never written are of no interest.
    await bench.finish()
    assert len(bench.came) > 200


@cocotb.test()
async def a_row_is_read_without_a_gap(dut):
    bench = await Bench.begin(dut)
    for column in range(16):
        bench.queues[1].append((row(7, 1, column), column * 0x0101_0101_0101_0101, 0xFF))
    await bench.finish()
    began = bench.clock
    for column in range(16):
        bench.queues[1].append((row(7, 1, column), None, 0))
    await bench.finish()
    # 64 clocks for the words; a refresh may come between.
    assert bench.clock - began < 64 + 8 + 20 + 16
    assert min(bench.came) == 8


@cocotb.test()
async def refreshes_come_in_time(dut):
    """Idle, and while all ask: the model counts them."""
    bench = await Bench.begin(dut)
    await ClockCycles(dut.clk, 3_000)
    for at in range(500):
        bench.queues[at % MASTERS].append((row(at % 5, at % 4, at % 64), at, 0xFF))
    await bench.finish()


@pytest.mark.parametrize("clk_ns", [10, 15, 20])
def test_sdram(clk_ns):
    run_block("sdram", "test_sdram", {"CLK_NS": clk_ns})
