"""rx_fifo: whole frames or nothing, pauses, metadata in every beat."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from scapy.all import IP, TCP, UDP, Ether, Raw, raw

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import RX_USER, Streams, last_user, pack, run_block, unpack  # noqa: E402

EVENTS = ["frame", "error", "too_long", "rule", "overflow"]
SIZE = 32768


class Bench(Streams):
    """The block with counters of its events."""

    @classmethod
    async def begin(cls, dut):
        bench = await cls.start(dut)
        dut.now.value = 0x1234
        bench.counts = dict.fromkeys(EVENTS, 0)
        cocotb.start_soon(bench.watch())
        return bench

    async def watch(self):
        while True:
            await RisingEdge(self.dut.clk)
            assert self.dut.s_axis_tready.value == 1, "a MAC cannot be held back"
            for name in EVENTS:
                self.counts[name] += int(getattr(self.dut, f"event_{name}").value)

    async def take(self):
        frame = await with_timeout(self.sink.recv(), 1, "ms")
        users = set(frame.tuser) if isinstance(frame.tuser, list) else {frame.tuser}
        assert len(users) == 1, "tuser in every beat"
        return bytes(frame.tdata), unpack(RX_USER, last_user(frame))

    async def settle(self):
        while not self.source.idle() if callable(self.source.idle) else not self.source.idle:
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 10)


def frame(length, fill=0):
    """A frame of so many bytes, as scapy makes it."""
    packet = Ether() / IP() / (TCP() if fill % 2 else UDP())
    head = raw(packet / Raw(bytes(max(0, length - len(packet)))))
    return (head[:length - 1] + bytes([fill % 256]))[:length]


@cocotb.test()
async def metadata_in_every_beat(dut):
    bench = await Bench.begin(dut)
    user = dict(csum_status=2, csum_raw=0xABCD, hash=0xDEADBEEF, hash_type=5, channel=9)
    for length in (1, 60, 61, 64, 65, 1514, 9018):
        await bench.send(frame(length), pack(RX_USER, **user, seg_count=9, seg_size=9, arrival=9))
        data, seen = await bench.take()
        assert data == frame(length)
        assert seen == {**unpack(RX_USER, pack(RX_USER, **user)), "seg_count": 1, "arrival": 0x1234}
    assert bench.counts == {**dict.fromkeys(EVENTS, 0), "frame": 7}


@cocotb.test()
async def reasons_to_drop(dut):
    bench = await Bench.begin(dut)
    bad = [(60, dict(error=1)), (9019, {}), (60, dict(drop=1)), (9019, dict(error=1, drop=1)), (12000, dict(drop=1))]
    for length, user in bad:
        await bench.send(frame(length), pack(RX_USER, **user))
        await bench.send(frame(70, 3), 0)
        assert (await bench.take())[0] == frame(70, 3)
    assert bench.counts == {"frame": 5, "error": 2, "too_long": 2, "rule": 1, "overflow": 0}


@cocotb.test()
async def what_finds_no_room_is_dropped_whole(dut):
    bench = await Bench.begin(dut)
    bench.sink.pause = True
    lengths = [9000, 9000, 9000, 9000, 3000, 9000, 60]
    for index, length in enumerate(lengths):
        await bench.send(frame(length, index), 0)
    await bench.settle()
    assert bench.counts == {**dict.fromkeys(EVENTS, 0), "frame": 5, "overflow": 2}
    bench.sink.pause = False
    for index in (0, 1, 2, 4, 6):
        assert (await bench.take())[0] == frame(lengths[index], index)


@cocotb.test()
async def a_pause_is_asked_for_before_it_overflows(dut):
    bench = await Bench.begin(dut)
    dut.cfg_pause_high.value = SIZE // 2
    dut.cfg_pause_low.value = SIZE // 4
    bench.sink.pause = True
    asked = []
    for index in range(9):
        await bench.send(frame(2048, index), 0)
        await bench.settle()
        asked.append(int(dut.pause_request.value))
    # Three beats are on their way out already.
    assert asked == [0] * 8 + [1]
    bench.sink.pause = False
    for left in range(9, 0, -1):
        assert (await bench.take())[0] == frame(2048, 9 - left)
        if left - 1 > 6:
            assert dut.pause_request.value == 1
    await ClockCycles(dut.clk, 5)
    assert dut.pause_request.value == 0 and bench.counts["overflow"] == 0


@cocotb.test()
async def small_frames_pass_without_a_bubble(dut):
    width = len(dut.s_axis_tkeep)
    bench = await Bench.begin(dut)
    count, beats = 100, -(-60 // width)
    for index in range(count):
        await bench.send(frame(60, index), 0)
    clocks = []
    while len(clocks) < count:
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value and dut.m_axis_tready.value and dut.m_axis_tlast.value:
            clocks.append(cocotb.utils.get_sim_time("ns") / 6.4)
    gaps = {round(after - before) for before, after in zip(clocks, clocks[1:])}
    assert gaps == {beats}, gaps
    assert bench.counts["frame"] == count


@cocotb.test()
async def random_frames(dut):
    """More than the consumer takes: what comes out is what was kept, in its order."""
    chance = random.Random(7)
    bench = await Bench.begin(dut)
    bench.pause(7, 30)
    bench.source.set_pause_generator(None)
    sent = []
    for index in range(60):
        length = chance.choice([1, 60, 61, chance.randrange(60, 1600), 9018])
        error, drop = int(chance.random() < 0.1), int(chance.random() < 0.1)
        data = frame(length, index)
        sent.append((data, error or drop))
        await bench.send(data, pack(RX_USER, error=error, drop=drop, hash=index))
    await bench.settle()
    kept = bench.counts["frame"]
    assert sum(bench.counts.values()) == len(sent)
    place = -1
    for _ in range(kept):
        data, user = await bench.take()
        assert user["hash"] > place, "order"
        place = user["hash"]
        assert sent[place] == (data, 0)
    lost = sum(1 for _, unwanted in sent if not unwanted) - kept
    assert lost == bench.counts["overflow"]


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_rx_fifo(width):
    run_block("rx_fifo", "test_rx_fifo", {"DATA_W": width})
