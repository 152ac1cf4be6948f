"""soft_fill: reads are what memory holds, and new enough; what lies behind a line is there before it is asked for."""

import random
import sys
from collections import deque
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import run_block  # noqa: E402

LINES, WORDS = 8, 64
LINE, LAST, ONE = 0b010, 0b111, 0b000
# Clocks in which a word must come, however memory and others behave here.
PATIENCE = 400


class Bench:
    """Memory, whose words tell their place and how often they were written; and how new a read has to find them."""

    @classmethod
    async def begin(cls, dut, latency, chance=None):
        self = cls()
        self.dut, self.latency, self.chance, self.clock = dut, latency, chance, 0
        self.version, self.floor = [0] * WORDS, [0] * WORDS
        self.under_way, self.asked = deque(), []
        for name in ("reads", "stores", "address", "cti", "stored", "others", "come", "come_data"):
            getattr(dut, name).value = 0
        dut.allows.value = dut.allows_store.value = 1
        dut.rst.value = 1
        Clock(dut.clk, 10, "ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        return self

    def often(self, share):
        return self.chance is None or self.chance.random() < share

    def word(self, at):
        return at << 24 | self.version[at]

    async def tick(self):
        """A clock: memory's side of it. What the processor's side shows was set before."""
        dut = self.dut
        due = self.under_way and self.under_way[0][0] <= self.clock and self.often(0.8)
        dut.come.value = int(bool(due))
        if due:
            dut.come_data.value = self.under_way.popleft()[1]
        dut.allows.value, dut.allows_store.value = int(self.often(0.7)), int(self.often(0.5))
        if self.chance:
            dut.others.value = int(self.chance.random() < 0.2)
        await ReadOnly()
        if dut.hold.value and not dut.cycle.value:
            assert not dut.ask.value, "read ahead though others wait for memory"
        if dut.grant.value:
            beat = int(dut.beat.value)
            self.asked.append(beat)
            found = self.word(2 * beat) | self.word(2 * beat + 1) << 32
            self.under_way.append((self.clock + self.latency, found))
        if dut.store_grant.value:
            at = 2 * int(dut.store_beat.value) + (int(dut.store_strobes.value) == 0xF0)
            assert int(dut.store_data.value) & 0xFFFF_FFFF == at, "a store's data"
            self.version[at] += 1
            self.floor[at] = self.version[at]
        if self.chance and self.chance.random() < 0.1:
            # Somebody else writes.
            self.version[self.chance.randrange(WORDS)] += 1
        self.clock += 1
        seen = bool(dut.ack.value), int(dut.data.value), bool(dut.cycle.value), bool(dut.push.value)
        await RisingEdge(dut.clk)
        return seen

    async def idle(self, clocks):
        for _ in range(clocks):
            await self.tick()

    async def read(self, at, count):
        """Reads `count` words from `at` on, a line or one; returns the clocks until the first and the last were there."""
        dut, started, times, began = self.dut, None, [], self.clock
        dut.reads.value = 1
        while len(times) < count:
            place = at + len(times)
            dut.address.value = place
            dut.cti.value = ONE if count == 1 else LAST if len(times) + 1 == count else LINE
            now = list(self.version)
            ack, data, cycle, _ = await self.tick()
            if cycle and started is None:
                started = now
            if ack:
                least = max(self.floor[place], started[place] if count == 1 else 0)
                assert data >> 24 == place, f"word {place} is that of {data >> 24}"
                assert least <= data & 0xFFFFFF <= self.version[place], f"word {place} is older than it may be"
                times.append(self.clock - began)
            assert self.clock - began < PATIENCE, "no answer"
        dut.reads.value = 0
        if count == 1:
            # A read past the cache: all that is read from now on is as new as memory was then.
            self.floor = [max(pair) for pair in zip(self.floor, started, strict=True)]
        return times[0], times[-1]

    async def store(self, at):
        dut = self.dut
        dut.stores.value, dut.address.value, dut.stored.value = 1, at, at
        while not (await self.tick())[3]:
            pass
        dut.stores.value = 0


@cocotb.test()
async def reads_are_new_enough_whatever_happens(dut):
    """Lines, words, stores and others' writes in any order, with lines that follow each other more often than not."""
    chance = random.Random(1)
    bench = await Bench.begin(dut, 3, chance)
    line = 0
    for at in range(2_000):
        what = chance.random()
        if at % 100 == 0:
            bench.latency = chance.choice([1, 3, 8, 18])
        if what < 0.5:
            line = (line + 1) % LINES if chance.random() < 0.6 else chance.randrange(LINES)
            await bench.read(8 * line, 8)
        elif what < 0.6:
            await bench.read(chance.randrange(WORDS), 1)
        elif what < 0.8:
            # Near what may have been read ahead.
            await bench.store(8 * ((line + chance.randrange(2)) % LINES) + chance.randrange(8))
        else:
            await bench.idle(chance.randrange(12))


@cocotb.test()
async def the_line_behind_is_there_already(dut):
    bench = await Bench.begin(dut, 18)
    first, last = await bench.read(0, 8)
    assert 18 <= first <= 20 and last == first + 7
    for line in (1, 2, 3):
        await bench.idle(30)
        first, last = await bench.read(8 * line, 8)
        assert first <= 2 and last == first + 7
    # Another line comes from memory, as before; so does one whose word was stored into.
    await bench.idle(30)
    assert (await bench.read(8 * 6, 8))[0] >= 18
    await bench.idle(30)
    await bench.store(8 * 7 + 5)
    await bench.idle(5)
    assert (await bench.read(8 * 7, 8))[0] >= 18


@cocotb.test()
async def nothing_is_read_ahead_while_others_ask_but_what_is_wanted_comes(dut):
    bench = await Bench.begin(dut, 18)
    dut.others.value = 1
    for line in range(4):
        await bench.read(8 * line, 8)
        await bench.idle(30)
    assert bench.asked == list(range(4 * 4))


@cocotb.test()
async def each_line_is_asked_for_once(dut):
    """As fast as the processor may ask: also one that is under way when it is wanted."""
    bench = await Bench.begin(dut, 18)
    for line in range(6):
        await bench.read(8 * line, 8)
    await bench.idle(30)
    assert bench.asked == list(range(4 * 7))


@pytest.mark.parametrize("size_w", [8])
def test_soft_fill(size_w):
    run_block("soft_fill", "test_soft_fill", {"SIZE_W": size_w})
