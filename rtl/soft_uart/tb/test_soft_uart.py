"""soft_uart: bytes as they are on the line, both ways."""

import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import run_block  # noqa: E402


async def begin(dut):
    dut.rst.value = 1
    dut.rx.value = 1
    for name in ("sent_valid", "sent", "typed_ready"):
        getattr(dut, name).value = 0
    Clock(dut.clk, 20, "ns").start()
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 3)
    return int(dut.BIT_CLOCKS.value)


@cocotb.test()
async def bytes_are_sent_in_their_order(dut):
    bit = await begin(dut)
    text = bytes([0x00, 0xFF, 0x55, 0xA3, *range(20)])
    for byte in text:
        dut.sent_valid.value, dut.sent.value = 1, byte
        await RisingEdge(dut.clk)
    dut.sent_valid.value = 0
    for byte in text:
        while dut.tx.value == 1:
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, bit // 2)
        seen = [int(dut.tx.value)]
        for _ in range(9):
            await ClockCycles(dut.clk, bit)
            seen.append(int(dut.tx.value))
        assert seen == [0, *(byte >> at & 1 for at in range(8)), 1], byte


@cocotb.test()
async def it_says_when_it_is_full(dut):
    await begin(dut)
    taken = 0
    while dut.sent_ready.value == 1:
        dut.sent_valid.value, dut.sent.value = 1, taken & 0xFF
        await RisingEdge(dut.clk)
        taken += 1
    dut.sent_valid.value = 0
    assert 2_046 <= taken <= 2_300


@cocotb.test()
async def bytes_are_received(dut):
    """Also from a line that is one in a hundred too fast or slow; not what is too short, nor what has no stop."""
    bit = await begin(dut)

    async def line(level, clocks):
        dut.rx.value = level
        await ClockCycles(dut.clk, clocks)

    for index, byte in enumerate((0x00, 0xFF, 0x55, 0xC7)):
        clocks = bit + (-1, 0, 1)[index % 3] * max(1, bit // 50)
        for level in (0, *(byte >> at & 1 for at in range(8)), 1):
            await line(level, clocks)
        assert dut.typed_valid.value == 1 and int(dut.typed.value) == byte
        dut.typed_ready.value = 1
        await RisingEdge(dut.clk)
        dut.typed_ready.value = 0
        await ClockCycles(dut.clk, 2)
        assert dut.typed_valid.value == 0
    await line(0, bit // 4)
    await line(1, 12 * bit)
    await line(0, 10 * bit)
    await line(1, 2 * bit)
    assert dut.typed_valid.value == 0


@pytest.mark.parametrize("bit_clocks", [64])
def test_soft_uart(bit_clocks):
    run_block("soft_uart", "test_soft_uart", {"BIT_CLOCKS": bit_clocks})
