"""int_pacer: the four modes clock by clock, what falls into one clock, and random packets against a model by definition."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import run_block  # noqa: E402

NO_TIMER, LAST_INTERRUPT, FIRST_NEW, LAST_NEW = range(4)


class Bench:
    """Inputs change at the falling edge; `clock` is one period and gives irq as the next shows it."""

    def __init__(self, dut):
        self.dut, self.now, self.queues = dut, 0, len(dut.irq)

    @classmethod
    async def begin(cls, dut, tick=3, **settings):
        bench = cls(dut)
        Clock(dut.clk, 6400, "ps").start()
        for name in ("packet", "taken", "masked", "cfg_adaptive", "cfg_adaptive_min", "cfg_adaptive_low", "cfg_adaptive_high"):
            getattr(dut, name).value = 0
        dut.cfg_tick_clocks.value = tick
        bench.configure(**settings)
        dut.rst.value = 1
        for _ in range(4):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        return bench

    def configure(self, mode=NO_TIMER, timer=0, threshold=65535):
        """The same for all queues."""
        for handle, bits, value in (
            (self.dut.cfg_mode, 2, mode), (self.dut.cfg_timer, 16, timer), (self.dut.cfg_threshold, 16, threshold),
        ):
            handle.value = sum(value << bits * queue for queue in range(self.queues))

    async def clock(self, packet=0, taken=0, masked=0):
        self.dut.packet.value, self.dut.taken.value, self.dut.masked.value = packet, taken, masked
        await FallingEdge(self.dut.clk)
        self.now += 1
        return int(self.dut.irq.value)

    async def fires_after(self, limit=500):
        """Clocks without an event until the interrupt of queue 0; None if it never comes."""
        for clocks in range(1, limit):
            if await self.clock() & 1:
                return clocks
        return None


@cocotb.test()
async def without_a_timer_only_the_threshold_fires(dut):
    bench = await Bench.begin(dut, mode=NO_TIMER, timer=1, threshold=3)
    assert await bench.clock(packet=1) == 0 and await bench.clock(packet=1) == 0
    assert await bench.fires_after() is None
    assert await bench.clock(packet=1) == 1 and await bench.clock() == 1
    # Two take it to zero, a packet in the same clock belongs to the next.
    assert await bench.clock(taken=1, packet=1) == 0
    assert await bench.clock(packet=1) == 0 and await bench.clock(packet=1) == 1


@cocotb.test()
async def each_timer_counts_from_what_its_mode_says(dut):
    # Five ticks of three clocks.
    for mode, expected in ((LAST_INTERRUPT, 15 - 7), (FIRST_NEW, 15 - 4), (LAST_NEW, 15)):
        bench = await Bench.begin(dut, mode=mode, timer=5)
        await bench.clock(taken=1)
        for _ in range(2):
            await bench.clock()
        await bench.clock(packet=1)
        for _ in range(3):
            await bench.clock()
        await bench.clock(packet=1)
        assert await bench.fires_after() == expected, mode
        # Nothing waits: nothing fires, and after a long time the next packet has waited long enough in mode 1.
        assert await bench.clock(taken=1) == 0
        assert await bench.fires_after(60) is None
        assert await bench.clock(packet=1) == (mode == LAST_INTERRUPT)


@cocotb.test()
async def a_steady_stream_restarts_the_timer_of_mode_3(dut):
    bench = await Bench.begin(dut, mode=LAST_NEW, timer=2, threshold=6)
    for _ in range(5):
        assert await bench.clock(packet=1) == 0
        for _ in range(5):
            assert await bench.clock() == 0
    assert await bench.clock(packet=1) == 1


@cocotb.test()
async def one_clock(dut):
    """A timer that runs out in the clock of taken raises nothing; a threshold or timer of 0 fires with the first packet."""
    bench = await Bench.begin(dut, mode=FIRST_NEW, timer=4)
    await bench.clock(packet=1)
    for _ in range(11):
        assert await bench.clock() == 0
    assert await bench.clock(taken=1) == 0
    assert await bench.fires_after(60) is None
    await bench.clock(packet=1)
    for _ in range(11):
        assert await bench.clock() == 0
    # A packet then waits its own time.
    assert await bench.clock(taken=1, packet=1) == 0
    assert await bench.fires_after(60) == 12
    bench.configure(mode=FIRST_NEW, timer=0)
    assert await bench.clock(taken=1) == 0 and await bench.clock() == 0
    assert await bench.clock(packet=1) == 1
    bench.configure(mode=NO_TIMER, threshold=0)
    assert await bench.clock(taken=1) == 0 and await bench.clock() == 0
    assert await bench.clock(packet=1) == 1
    assert await bench.clock(taken=1, packet=1) == 1


@cocotb.test()
async def masked_holds_the_interrupt_and_nothing_else(dut):
    bench = await Bench.begin(dut, mode=FIRST_NEW, timer=2)
    await bench.clock(packet=1)
    for _ in range(20):
        assert await bench.clock(masked=1) == 0
    assert await bench.clock() == 1 and await bench.clock(masked=1) == 0 and await bench.clock() == 1
    assert int(dut.pending.value) & 0xFFFF == 1


@cocotb.test()
async def the_timer_follows_the_load(dut):
    bench = await Bench.begin(dut, tick=1, mode=FIRST_NEW, timer=6)
    dut.cfg_adaptive.value, dut.cfg_adaptive_min.value = 1, 2
    dut.cfg_adaptive_low.value, dut.cfg_adaptive_high.value = 2, 5

    async def timer_after(packets):
        for _ in range(packets):
            await bench.clock(packet=1)
        await bench.clock(taken=1)
        return int(dut.timer.value) & 0xFFFF

    for _ in range(4):
        await bench.clock()
    assert [await timer_after(count) for count in (5, 9, 4, 3, 5, 5, 5, 0)] == [3, 4, 4, 4, 5, 6, 6, 6]
    assert [await timer_after(count) for count in (2, 1, 1)] == [3, 2, 2]


class Model:
    """One queue by definition: times are kept, not counted."""

    def __init__(self, now):
        self.pending, self.started = 0, {LAST_INTERRUPT: now, FIRST_NEW: now, LAST_NEW: now}

    def clock(self, now, packet, taken, mode, clocks, threshold):
        if taken:
            self.pending, self.started[LAST_INTERRUPT] = 0, now
        if packet:
            if self.pending == 0:
                self.started[FIRST_NEW] = now
            self.started[LAST_NEW] = now
            self.pending += 1
        late = mode != NO_TIMER and now >= self.started[mode] + clocks
        return self.pending > 0 and (self.pending >= max(threshold, 1) or late)


@cocotb.test()
async def random_packets(dut):
    seed = 5
    chance = random.Random(seed)
    for mode in (NO_TIMER, LAST_INTERRUPT, FIRST_NEW, LAST_NEW):
        tick, timer, threshold = chance.randrange(1, 6), chance.randrange(8), chance.randrange(1, 20)
        bench = await Bench.begin(dut, tick=tick, mode=mode, timer=timer, threshold=threshold)
        await bench.clock()
        models = [Model(0) for _ in range(bench.queues)]
        load = [chance.choice([2, 10, 40]) for _ in models]
        for now in range(1, 600):
            packet = sum((chance.randrange(100) < load[queue]) << queue for queue in range(bench.queues))
            taken = sum((chance.randrange(100) < 4) << queue for queue in range(bench.queues))
            expected = sum(
                model.clock(now, packet >> queue & 1, taken >> queue & 1, mode, tick * timer, threshold) << queue
                for queue, model in enumerate(models)
            )
            assert await bench.clock(packet=packet, taken=taken) == expected, f"seed {seed}, mode {mode}, clock {now}"


@pytest.mark.parametrize("queues", [1, 8])
def test_int_pacer(queues):
    run_block("int_pacer", "test_int_pacer", {"QUEUES": queues})
