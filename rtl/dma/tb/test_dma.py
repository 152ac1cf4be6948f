"""The DMA engine in front of memories and a register bus that others wrote (cocotbext-axi), with frames that scapy made.

Registers are read from rtl/regs/mcdma.toml, so that the RTL is held against the file and not against its own idea of it.
"""

import os
import random
import sys
import tomllib
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from scapy.all import IP, TCP, UDP, Ether, Raw

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import RTL, RX_USER, TX_USER, last_user, run_block  # noqa: E402

REGS = tomllib.loads((RTL / "regs/mcdma.toml").read_text())

SOF, EOF, COMPLETE = 1 << 31, 1 << 30, 1 << 31


def unpack(fields, value):
    """A packed structure as a dictionary; its last field lies lowest."""
    out = {}
    for name, bits in reversed(fields):
        out[name] = value & ((1 << bits) - 1)
        value >>= bits
    return out


def pack(fields, values):
    total = 0
    for name, bits in fields:
        total = total << bits | values[name]
    return total


def app_fields(layout, direction):
    """Where each field lies: name -> (word, lowest bit, bits)."""
    found = {}
    for app in REGS["app"]:
        if app["layout"] == layout and app["direction"] == direction:
            for number, word in enumerate(app["words"]):
                for field in word["fields"]:
                    high, _, low = field["bits"].partition(":")
                    low = low or high
                    found[field["name"].lower()] = (number, int(low), int(high) - int(low) + 1)
    return found


class Bench:
    """The engine, a memory behind both masters, the streams."""

    def __init__(self, dut):
        self.dut = dut
        cocotb.start_soon(Clock(dut.clk, 6.4, unit="ns").start())
        self.data = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=2**20)
        self.desc = AxiRam(AxiBus.from_prefix(dut, "m_axi_sg"), dut.clk, dut.rst, size=2**20, mem=self.data.mem)
        self.lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for ram in (self.data, self.desc):
            ram.write_if.log.setLevel("WARNING")
            ram.read_if.log.setLevel("WARNING")
        for stream in (self.source, self.sink, self.lite.write_if, self.lite.read_if):
            stream.log.setLevel("WARNING")
        self.layout = int(os.environ.get("APP_LAYOUT", "0"))
        self.queues = len(dut.irq_tx)

    async def start(self):
        dut = self.dut
        dut.pace_tx.value = 0
        dut.pace_rx.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 5)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 5)

    async def read(self, address):
        return await self.lite.read_dword(address)

    async def write(self, address, value):
        await self.lite.write_dword(address, value)

    def word(self, address):
        return int.from_bytes(self.data.read(address, 4), "little")

    def pauses(self, seed, percent):
        rng = random.Random(seed)
        channels = [self.sink, self.source]
        for ram in (self.data, self.desc):
            channels += [ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel,
                         ram.read_if.ar_channel, ram.read_if.r_channel]
        for channel in channels:
            own = random.Random(rng.random())
            channel.set_pause_generator((own.random() * 100 < percent for _ in iter(int, 1)))

    async def enable(self, base, queue, first):
        await self.write(base, 1)
        await self.write(base + 8, (1 << self.queues) - 1)
        channel = base + 0x40 * (queue + 1)
        await self.write(channel + 0x08, first)
        await self.write(channel + 0x00, 1 | 0xE0 | 1 << 16)

    def descriptor(self, address, following, buffer, control, app=(0,) * 5):
        words = [following, 0, buffer, 0, 0, control, 0, 0, *app, 0, 0, 0]
        self.data.write(address, b"".join(word.to_bytes(4, "little") for word in words))

    async def until(self, condition, clocks=5000):
        for _ in range(clocks):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError("it never happened")


def tx_app(layout, user):
    words = [0] * 5
    for name, (word, low, _) in app_fields(layout, "mm2s").items():
        words[word] |= user[name] << low
    return words


def rx_app(layout, user, length):
    words = [0] * 5
    values = dict(user, length=length, queue=user["channel"])
    for name, (word, low, bits) in app_fields(layout, "s2mm").items():
        words[word] |= (values[name] & ((1 << bits) - 1)) << low
    return words


def some_user(rng, queue):
    user = {name: rng.getrandbits(bits) for name, bits in TX_USER}
    user["channel"], user["seg"], user["csum"] = queue, rng.randrange(3), rng.randrange(3)
    return user


def packet(rng, size):
    layer = TCP(sport=rng.randrange(65536), dport=80, flags="A") if rng.random() < 0.5 else UDP(sport=1, dport=2)
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") / layer
    frame = frame / Raw(rng.randbytes(max(0, size - len(bytes(frame)))))
    return bytes(frame)


@cocotb.test()
async def registers_are_as_the_file_says(dut):
    bench = Bench(dut)
    await bench.start()
    banks = {bank["name"]: bank for bank in REGS["bank"]}
    info = bench.queues | bench.layout << 4 | (len(dut.m_axis_tdata) // 8) << 8 | 40 << 16 | 8 << 24
    for register in REGS["register"]:
        bank = banks.get(register.get("bank"))
        places = [register["offset"]]
        if bank:
            places = [bank["base"] + bank["stride"] * q + register["offset"] for q in range(bench.queues)]
        for place in places:
            expected = info if register["name"] == "DMA_INFO" else register["reset"]
            assert await bench.read(place) == expected, f"{register['name']} at {place:#x} after the reset"
    # What can be written reads back, no other bit does.
    for register in REGS["register"]:
        if register["access"] != "rw" or register["name"] in ("TAILDESC", "TAILDESC_MSB"):
            continue
        bank = banks.get(register.get("bank"))
        place = register["offset"] + (bank["base"] if bank else 0)
        mask = 0
        for field in register["fields"]:
            if field.get("access", "rw") == "rw" and field["name"] not in ("RS", "RESET"):
                high, _, low = field["bits"].partition(":")
                low = low or high
                mask |= ((1 << (int(high) - int(low) + 1)) - 1) << int(low)
        if register["name"].endswith("_MSB"):
            mask &= 0xFF
        for value in (0xFFFFFFFA, 0x55555550, 0xAAAAAAAA & ~4, 0):
            await bench.write(place, value & ~5)
            assert await bench.read(place) == value & mask & ~5, register["name"]


@cocotb.test()
async def frames_leave_as_descriptors_say(dut):
    bench = Bench(dut)
    await bench.start()
    rng = random.Random(3)
    queue = bench.queues - 1
    ring = 0x1000
    await bench.enable(0, queue, ring)
    # One descriptor; two at odd addresses; a single byte and the rest.
    expected = []
    at, buffer = ring, 0x40000
    for pieces in ([60], [1514], [33, 967], [1, 99], [7, 8, 9, 1000]):
        size = sum(pieces)
        frame, user = packet(rng, size)[:size], some_user(rng, queue)
        frame = frame.ljust(size, b"\0")
        offset = 0
        for index, length in enumerate(pieces):
            buffer = (buffer + 4095 & ~4095) - rng.randrange(1, 40)
            bench.data.write(buffer, frame[offset:offset + length])
            control = length | (SOF if index == 0 else 0) | (EOF if index + 1 == len(pieces) else 0)
            app = tx_app(bench.layout, user) if index == 0 else [0xFFFFFFFF] * 5
            bench.descriptor(at, at + 64, buffer, control, app)
            at, offset, buffer = at + 64, offset + length, buffer + length + 64
        expected.append((frame, user))
    await bench.write(0x40 * (queue + 1) + 0x10, at - 64)
    for frame, user in expected:
        seen = await with_timeout(bench.sink.recv(), 100, "us")
        assert bytes(seen.tdata) == frame
        assert unpack(TX_USER, int(last_user(seen))) == user
    await bench.until(lambda: bench.word(at - 64 + 0x1C) & COMPLETE)
    assert bench.word(ring + 0x1C) == COMPLETE | 60
    await bench.until(lambda: int(dut.irq_tx.value) == 1 << queue)
    assert await bench.read(0x28) == 1 << queue
    assert await bench.read(0x40 * (queue + 1) + 0x18) == len(expected)
    status = await bench.read(0x40 * (queue + 1) + 4)
    assert status & 0x21 == 0x21, hex(status)
    await bench.write(0x40 * (queue + 1) + 4, 0x20)
    await ClockCycles(dut.clk, 5)
    assert int(dut.irq_tx.value) == 0


@cocotb.test()
async def frames_arrive_with_their_status(dut):
    bench = Bench(dut)
    await bench.start()
    rng = random.Random(4)
    for queue in range(bench.queues):
        ring = 0x8000 + 0x1000 * queue
        await bench.enable(0x500, queue, ring)
        for index in range(16):
            bench.descriptor(ring + 64 * index, ring + 64 * ((index + 1) % 16), 0x40000 + 0x8000 * queue + 0x400 * index, 512)
        await bench.write(0x540 + 0x40 * queue + 0x10, ring + 64 * 15)
    await bench.write(0x524, 1 << 16)
    at = [0] * bench.queues
    for size in (60, 61, 64, 512, 513, 1024, 1514, 14, 1):
        queue = rng.randrange(bench.queues)
        frame = packet(rng, size)[:size]
        user = {name: rng.getrandbits(bits) for name, bits in RX_USER}
        user["channel"] = queue
        await bench.source.send(AxiStreamFrame(frame, tuser=pack(RX_USER, user)))
        pieces = [frame[cut:cut + 512] for cut in range(0, len(frame), 512)]
        ring = 0x8000 + 0x1000 * queue
        last = ring + 64 * (at[queue] + len(pieces) - 1)
        await bench.until(lambda: bench.word(last + 0x18) & COMPLETE)
        for index, piece in enumerate(pieces):
            slot = at[queue] + index
            status = bench.word(ring + 64 * slot + 0x18)
            first, end = index == 0, index + 1 == len(pieces)
            assert status == COMPLETE | len(piece) | first << 27 | end << 26, hex(status)
            assert bench.word(ring + 64 * slot + 0x1C) == queue << 16
            buffer = 0x40000 + 0x8000 * queue + 0x400 * slot
            assert bytes(bench.data.read(buffer, len(piece))) == piece
            assert not any(bench.data.read(buffer + len(piece), 0x400 - len(piece))), "bytes behind the end"
        app = [bench.word(last + 0x20 + 4 * word) for word in range(5)]
        assert app == rx_app(bench.layout, user, size), [hex(word) for word in app]
        at[queue] += len(pieces)
    assert await bench.read(0x514) == 0


@cocotb.test()
async def no_descriptor_no_frame(dut):
    bench = Bench(dut)
    await bench.start()
    await bench.enable(0x500, 0, 0x8000)
    await bench.write(0x524, 2)
    user = {name: 0 for name, _ in RX_USER}
    await bench.source.send(AxiStreamFrame(bytes(100), tuser=pack(RX_USER, user)))
    await ClockCycles(dut.clk, 60)
    assert await bench.read(0x514) == 0, "dropped before its time"
    await ClockCycles(dut.clk, 200)
    assert await bench.read(0x514) == 1
    assert await bench.read(0x540 + 0x18) == 1
    assert await bench.read(0x544) & 0x10


@cocotb.test()
async def a_loop_under_pauses(dut):
    """What leaves comes back: both directions at once, memory and streams stumbling."""
    bench = Bench(dut)
    await bench.start()
    rng = random.Random(5)
    bench.pauses(6, 30)
    await bench.write(0x524, 1 << 16)
    count, frames = 24, {queue: [] for queue in range(bench.queues)}
    for queue in range(bench.queues):
        tx, rx = 0x1000 + 0x2000 * queue, 0x10000 + 0x2000 * queue
        await bench.enable(0, queue, tx)
        await bench.enable(0x500, queue, rx)
        for index in range(count):
            size = rng.choice([1, 60, 60, 64, 65, 500, 1514])
            frame = rng.randbytes(size)
            frames[queue].append(frame)
            buffer = 0x20000 + 0xC000 * queue + 0x800 * index + rng.randrange(200)
            bench.data.write(buffer, frame)
            user = {name: 0 for name, _ in TX_USER}
            bench.descriptor(tx + 64 * index, tx + 64 * index + 64, buffer, SOF | EOF | size, tx_app(bench.layout, user))
            bench.descriptor(rx + 64 * index, rx + 64 * index + 64, 0x80000 + 0xC000 * queue + 0x800 * index, 2048)
        await bench.write(0x540 + 0x40 * queue + 0x10, rx + 64 * (count - 1))
        await bench.write(0x40 + 0x40 * queue + 0x10, tx + 64 * (count - 1))
    order = {queue: 0 for queue in frames}
    for _ in range(count * bench.queues):
        seen = await with_timeout(bench.sink.recv(), 500, "us")
        queue = unpack(TX_USER, int(last_user(seen)))["channel"]
        assert bytes(seen.tdata) == frames[queue][order[queue]]
        order[queue] += 1
        user = {name: 0 for name, _ in RX_USER}
        user["channel"] = queue
        await bench.source.send(AxiStreamFrame(bytes(seen.tdata), tuser=pack(RX_USER, user)))
    for queue, sent in frames.items():
        for index, frame in enumerate(sent):
            rx = 0x10000 + 0x2000 * queue + 64 * index
            await bench.until(lambda: bench.word(rx + 0x18) & COMPLETE, 50000)
            assert bench.word(rx + 0x18) == COMPLETE | 3 << 26 | len(frame)
            assert bytes(bench.data.read(0x80000 + 0xC000 * queue + 0x800 * index, len(frame))) == frame


@cocotb.test()
async def descriptors_that_make_no_sense_wait_for_room(dut):
    """The descriptor memory does not answer, so the lists are as full as frames make them; then a queue after the other fails."""
    bench = Bench(dut)
    await bench.start()
    if bench.queues < 8:
        return
    await bench.write(0x524, 1 << 16)
    count = 12
    for queue in range(bench.queues):
        ring = 0x8000 + 0x1000 * queue
        await bench.enable(0x500, queue, ring)
        # The other queues' descriptors have no length.
        for index in range(count):
            bench.descriptor(ring + 64 * index, ring + 64 * index + 64, 0x40000 + 0x8000 * queue + 0x400 * index, 0 if queue else 512)
        await bench.write(0x540 + 0x40 * queue + 0x10, ring + 64 * (count - 1))
    await ClockCycles(dut.clk, 500)
    bench.desc.write_if.aw_channel.pause = True
    for queue in [0] * count + list(range(1, bench.queues)):
        user = {name: 0 for name, _ in RX_USER}
        user["channel"] = queue
        await bench.source.send(AxiStreamFrame(bytes([queue]) * 60, tuser=pack(RX_USER, user)))
    await ClockCycles(dut.clk, 1000)
    bench.desc.write_if.aw_channel.pause = False
    await ClockCycles(dut.clk, 2000)
    for index in range(count):
        status = bench.word(0x8000 + 64 * index + 0x18)
        assert status == COMPLETE | 3 << 26 | 60, f"descriptor {index}: {status:#x}"
    for queue in range(1, bench.queues):
        status = bench.word(0x8000 + 0x1000 * queue + 0x18)
        assert status == COMPLETE | 1 << 28 | 1 << 27, f"queue {queue}: {status:#x}"


@cocotb.test()
async def minimum_frames_are_received_at_line_rate(dut):
    """At 64 bit, 60-byte frames follow each other in 9 clocks: 8 beats and one to find the descriptor; 10.5 are allowed."""
    bench = Bench(dut)
    await bench.start()
    await bench.write(0x524, 1 << 16)
    count = 60
    await bench.enable(0x500, 0, 0x8000)
    for index in range(count):
        bench.descriptor(0x8000 + 64 * index, 0x8040 + 64 * index, 0x40000 + 0x800 * index, 2048)
    await bench.write(0x540 + 0x10, 0x8000 + 64 * (count - 1))
    await ClockCycles(dut.clk, 300)
    user = {name: 0 for name, _ in RX_USER}
    times = []

    async def watch():
        clock = 0
        while len(times) < count:
            await RisingEdge(dut.clk)
            clock += 1
            if int(dut.s_axis_tvalid.value) and int(dut.s_axis_tready.value) and int(dut.s_axis_tlast.value):
                times.append(clock)

    watcher = cocotb.start_soon(watch())
    for _ in range(count):
        bench.source.send_nowait(AxiStreamFrame(bytes(60), tuser=pack(RX_USER, user)))
    await with_timeout(watcher, 100, "us")
    clocks = (times[-1] - times[10]) / (count - 11)
    dut._log.info("%.2f clocks a frame", clocks)
    if len(dut.s_axis_tdata) == 64:
        assert clocks <= 10.5, clocks


@pytest.mark.parametrize("width, queues, layout", [(64, 4, 0), (64, 8, 0), (64, 1, 1), (32, 2, 0), (128, 2, 0), (512, 2, 0)])
def test_dma(width, queues, layout):
    os.environ["APP_LAYOUT"] = str(layout)
    run_block("dma", "test_dma", {"DATA_W": width, "QUEUES": queues, "APP_LAYOUT": layout})
