"""soft_loader: what is in flash comes to memory, and the processor does not begin with anything else."""

import random
import sys
import zlib
from pathlib import Path

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import run_block  # noqa: E402

BASE = 0x20_0000


def head(image, mark=b"LNR1", length=None, crc=None):
    """What lies in front of the image."""
    length = len(image) if length is None else length
    crc = zlib.crc32(image) if crc is None else crc
    return mark + length.to_bytes(4, "little") + crc.to_bytes(4, "little") + bytes(4)


async def flash(dut, content):
    """A flash that knows to wake (AB) and to read (03): bits are taken at rising edges and given at falling ones."""
    woken = False
    while True:
        while dut.flash_cs_n.value == 1:
            await RisingEdge(dut.clk)
        bits, at = [], None
        while dut.flash_cs_n.value == 0:
            before = int(dut.flash_clk.value)
            await RisingEdge(dut.clk)
            after = int(dut.flash_clk.value)
            if after > before and at is None:
                bits.append(int(dut.flash_out.value))
                if len(bits) == 8 and int("".join(map(str, bits)), 2) == 0xAB:
                    woken = True
                if len(bits) == 32:
                    word = int("".join(map(str, bits)), 2)
                    assert woken and word == 0x03 << 24 | BASE
                    at = 0
            elif after < before and at is not None:
                byte = content[at // 8] if at // 8 < len(content) else 0xFF
                dut.flash_in.value = byte >> 7 - at % 8 & 1
                at += 1


async def load(dut, content, clocks=20_000):
    """Runs it to its end: what was written, and whether the processor may begin."""
    dut.rst.value, dut.flash_in.value, dut.grant.value = 1, 0, 0
    clock = Clock(dut.clk, 20, "ns")
    clock.start()
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    task = cocotb.start_soon(flash(dut, content))
    written, chance = {}, random.Random(1)
    for _ in range(clocks):
        await FallingEdge(dut.clk)
        dut.grant.value = int(dut.ask.value == 1 and chance.random() < 0.3)
        await RisingEdge(dut.clk)
        if dut.grant.value == 1:
            written[int(dut.beat.value)] = int(dut.data.value).to_bytes(8, "little")
        if dut.is_done.value == 1 or dut.is_bad.value == 1:
            break
    await ClockCycles(dut.clk, 5)
    assert dut.flash_cs_n.value == 1 and dut.is_done.value != dut.is_bad.value
    task.cancel()
    clock.stop()
    return b"".join(written[at] for at in range(len(written))), dut.is_done.value == 1


@cocotb.test()
async def an_image_is_copied(dut):
    image = random.Random(3).randbytes(200)
    assert await load(dut, head(image) + image) == (image, True)
    assert await load(dut, head(image[:8]) + image) == (image[:8], True)


@cocotb.test()
async def anything_else_is_refused(dut):
    image = random.Random(4).randbytes(64)
    for wrong in (head(image, mark=b"LNR2"), head(image, length=0), head(image, length=60), head(image, length=2 << 20), b"\xff" * 16):
        assert await load(dut, wrong + image) == (b"", False), wrong
    assert await load(dut, head(image, crc=1) + image) == (image, False)
    assert await load(dut, head(image) + image[:-1] + b"\0") == (image[:-1] + b"\0", False)


@pytest.mark.parametrize("size_w", [20])
def test_soft_loader(size_w):
    run_block("soft_loader", "test_soft_loader", {"SIZE_W": size_w})
