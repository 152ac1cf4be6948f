"""lro: directed cases and a random sweep; scapy says what the large segment must look like."""

import random
import sys
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from scapy.all import IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPOption_NOP, IPv6, Raw, raw
from scapy.layers.inet6 import IPv6ExtHdrDestOpt

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tb"))
from bench import RX_USER, Streams, last_user, pack, run_block, unpack  # noqa: E402

TCP_GOOD = 2
EVENTS = ["opened", "joined", "passed", "timeout", "evicted", "pressure"]


class Flow:
    """A TCP flow; each segment follows the one before."""

    def __init__(self, port, v6=False, tags=0, stamps=False):
        self.port, self.v6, self.tags, self.stamps = port, v6, tags, stamps
        self.seq, self.ack, self.window, self.value = 1000 * port, 7, 500, 0xFFFFFFF0

    def packet(self, payload, flags="A", **ip_fields):
        ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        if self.tags > 1:
            ether /= Dot1AD(vlan=5)
        if self.tags > 0:
            ether /= Dot1Q(vlan=7)
        ip = IPv6(src="fd00::1", dst="fd00::2", hlim=60) if self.v6 else IP(
            src="10.0.0.1", dst="10.0.0.2", flags="DF", **ip_fields)
        options = [("NOP", None), ("NOP", None), ("Timestamp", (self.value, 9))] if self.stamps else []
        tcp = TCP(sport=self.port, dport=80, seq=self.seq, ack=self.ack, flags=flags, window=self.window, options=options)
        return ether / ip / tcp / Raw(payload)

    def segment(self, payload, flags="A", **ip_fields):
        frame = raw(self.packet(payload, flags, **ip_fields)).ljust(60, b"\xee")
        self.seq = (self.seq + len(payload)) % 2**32
        self.ack += 3
        self.window += 1
        self.value = (self.value + 5) % 2**32
        return frame


def checked(frame):
    """A frame with its TCP checksum as scapy computes it: that of a coalesced frame is not made again."""
    packet = Ether(frame)
    assert IP not in packet or packet[IP].chksum == IP(raw(packet[IP].copy()))[IP].chksum
    if IP in packet:
        again = packet.copy()
        del again[IP].chksum
        assert Ether(raw(again))[IP].chksum == packet[IP].chksum, "IPv4 header checksum"
    del packet[TCP].chksum
    return raw(packet)


class Bench(Streams):
    """The block switched on, with a timer that is far away."""

    @classmethod
    async def begin(cls, dut, timeout=1_000_000):
        bench = await cls.start(dut)
        dut.cfg_enable.value = 1
        dut.cfg_timeout.value = timeout
        bench.counts = dict.fromkeys(EVENTS, 0)
        bench.arrival = 0
        cocotb.start_soon(bench.watch())
        return bench

    async def watch(self):
        while True:
            await RisingEdge(self.dut.clk)
            for name in EVENTS:
                self.counts[name] += int(getattr(self.dut, f"event_{name}").value)

    async def give(self, frame, status=TCP_GOOD):
        self.arrival += 1
        await self.send(frame, pack(RX_USER, csum_status=status, csum_raw=5, hash=77, seg_count=1, arrival=self.arrival))

    async def take(self):
        frame = await with_timeout(self.sink.recv(), 2, "ms")
        return bytes(frame.tdata), unpack(RX_USER, last_user(frame))

    async def nothing_more(self):
        await ClockCycles(self.dut.clk, 300)
        assert self.sink.empty() and self.sink.idle


async def expect(bench, frames):
    """These frames come out, unchanged, and no other."""
    for frame in frames:
        data, user = await bench.take()
        assert data == frame and user["seg_count"] == 1 and user["seg_size"] == 0 and user["csum_raw"] == 5
    await bench.nothing_more()


@cocotb.test()
@cocotb.parametrize(v6=[False, True], tags=[0, 1, 2], stamps=[False, True])
async def segments_become_one(dut, v6, tags, stamps):
    bench = await Bench.begin(dut)
    flow = Flow(49152, v6, tags, stamps)
    first = flow.packet(b"")
    payloads = [bytes([i]) * 100 for i in range(1, 6)] + [b"end"]
    for index, payload in enumerate(payloads):
        last = flow.packet(b"")
        await bench.give(flow.segment(payload, "PA" if index == 5 else "A"))
    data, user = await bench.take()
    # The headers of the first, with acknowledgement, window, PSH and timestamps of the last.
    wanted = first.copy()
    for field in ("ack", "window", "options"):
        setattr(wanted[TCP], field, getattr(last[TCP], field))
    wanted[TCP].flags = "PA"
    wanted[TCP].remove_payload()
    assert checked(data) == raw(wanted / Raw(b"".join(payloads)))
    assert (user["seg_count"], user["seg_size"], user["arrival"], user["csum_status"]) == (6, 100, 6, TCP_GOOD)
    assert user["hash"] == 77
    await bench.nothing_more()
    assert bench.counts == {**dict.fromkeys(EVENTS, 0), "opened": 1, "joined": 5}


@cocotb.test()
async def what_ends_a_flow(dut):
    bench = await Bench.begin(dut)
    flow, other = Flow(1000), Flow(2000)
    # Each of these belongs to the flow and does not join: it comes behind it, unchanged.
    for flags, payload in [("A", b""), ("FA", b"x"), ("SA", b""), ("R", b""), ("UA", b"x"), ("PA", b"y" * 101)]:
        frames = [flow.segment(b"a" * 100), flow.segment(payload, flags)]
        for frame in frames:
            await bench.give(frame)
        await expect(bench, frames)
    # Neither does one that is not verified, or with another TTL, or behind a gap.
    frames = [flow.segment(b"a" * 100), flow.segment(b"b" * 100, "PA", ttl=3)]
    for frame in frames:
        await bench.give(frame)
    await expect(bench, frames)
    for status in (0, 1, 3, 5, 6, 7):
        frames = [flow.segment(b"a" * 100), flow.segment(b"b" * 100)]
        await bench.give(frames[0])
        await bench.give(frames[1], status)
        await expect(bench, frames)
    frames = [flow.segment(b"a" * 100)]
    flow.seq += 1
    frames.append(flow.segment(b"b" * 100, "PA"))
    for frame in frames:
        await bench.give(frame)
    await expect(bench, frames)
    # What belongs to nobody passes, and the flow waits on.
    waiting = flow.segment(b"a" * 100)
    udp = raw(Ether() / IP() / UDP(sport=1000, dport=80) / Raw(b"u" * 30))
    await bench.give(waiting)
    await bench.give(udp)
    pushed = other.segment(b"o" * 10, "PA")
    await bench.give(pushed)
    await expect(bench, [udp, pushed])
    # Options and extension headers hide TCP: nothing stays open.
    hidden = raw(Ether() / IP(options=[IPOption_NOP()] * 4) / TCP() / Raw(b"h" * 30))
    await bench.give(hidden)
    await expect(bench, [waiting, hidden])
    waiting = flow.segment(b"a" * 100)
    hidden = raw(Ether() / IPv6() / IPv6ExtHdrDestOpt() / TCP() / Raw(b"h" * 30))
    for frame in (waiting, hidden):
        await bench.give(frame)
    await expect(bench, [waiting, hidden])


@cocotb.test()
async def flows_share_the_table(dut):
    bench = await Bench.begin(dut)
    flows = [Flow(port, v6=port % 2 == 1) for port in range(1, 10)]
    for _ in range(3):
        for flow in flows[:8]:
            await bench.give(flow.segment(b"x" * 50))
    await bench.nothing_more()
    # The ninth evicts the oldest.
    await bench.give(flows[8].segment(b"x" * 50))
    _, user = await bench.take()
    assert user["seg_count"] == 3
    await bench.nothing_more()
    assert bench.counts["evicted"] == 1
    # Switched off, all leave.
    dut.cfg_enable.value = 0
    counts = [(await bench.take())[1]["seg_count"] for _ in range(8)]
    assert counts == [3] * 7 + [1]
    frames = [flows[0].segment(b"x" * 50) for _ in range(3)]
    for frame in frames:
        await bench.give(frame)
    await expect(bench, frames)


@cocotb.test()
async def the_timer_runs_from_the_first_segment(dut):
    bench = await Bench.begin(dut, timeout=2000)
    flow = Flow(5)
    await bench.give(flow.segment(b"x" * 50))
    await ClockCycles(dut.clk, 1500)
    await bench.give(flow.segment(b"x" * 50))
    await ClockCycles(dut.clk, 400)
    assert bench.sink.empty() and bench.counts["timeout"] == 0
    await ClockCycles(dut.clk, 200)
    assert bench.counts["timeout"] == 1
    assert (await bench.take())[1]["seg_count"] == 2


@cocotb.test()
async def up_to_the_largest_packet(dut):
    bench = await Bench.begin(dut)
    flow = Flow(5, stamps=True)
    for _ in range(46):
        await bench.give(flow.segment(b"x" * 1448))
    data, user = await bench.take()
    # 45 * 1448 + 52 = 65,212; one more would be too much.
    assert len(data) == 14 + 65212 and user["seg_count"] == 45
    assert len(checked(data)) == len(data)


@cocotb.test()
async def small_frames_pass_without_a_bubble(dut):
    """Pure acknowledgements of 60 bytes at both ends: a frame every len / width clocks, which is 8 at 64 bits."""
    width = len(dut.s_axis_tkeep)
    if width > 8:
        return
    bench = await Bench.begin(dut)
    count, beats = 60, -(-60 // width)
    for port in range(count):
        await bench.give(Flow(port).segment(b""))
    clocks = []
    while len(clocks) < count:
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value and dut.m_axis_tready.value and dut.m_axis_tlast.value:
            clocks.append(cocotb.utils.get_sim_time("ns") / 6.4)
    gaps = {round(after - before) for before, after in zip(clocks, clocks[1:])}
    assert gaps == {beats}, gaps


@cocotb.test()
async def random_streams(dut):
    """Three flows with odd segments in between: each flow's bytes come in their order, whatever was joined."""
    chance = random.Random(4)
    bench = await Bench.begin(dut, timeout=3000)
    bench.pause(4, 25)
    flows = [Flow(1), Flow(2, v6=True), Flow(3, tags=1, stamps=True)]
    sent = {flow.port: b"" for flow in flows}
    starts = {flow.port: flow.seq for flow in flows}
    for _ in range(150):
        flow = chance.choice(flows)
        payload = chance.randbytes(chance.choice([1, 80, 80, 80, 80, 200]))
        flags = chance.choice(["A", "A", "A", "A", "PA", "FA"])
        sent[flow.port] += payload
        await bench.give(flow.segment(payload, flags), chance.choice([TCP_GOOD] * 9 + [0]))
    got = {port: b"" for port in sent}
    while got != sent:
        data, user = await bench.take()
        packet = Ether(data)
        tcp = packet[TCP]
        length = packet[IP].len - 20 if IP in packet else packet[IPv6].plen
        payload = raw(tcp)[4 * tcp.dataofs:length]
        assert tcp.seq == starts[tcp.sport] + len(got[tcp.sport])
        got[tcp.sport] += payload
        assert user["seg_count"] == 1 or len(payload) <= user["seg_count"] * user["seg_size"]
    await bench.nothing_more()
    assert bench.counts["joined"] > 20


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_lro(width):
    run_block("lro", "test_lro", {"DATA_W": width})
