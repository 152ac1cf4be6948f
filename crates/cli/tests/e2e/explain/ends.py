"""One end of a transfer between kernels: JSON in the argument says what it does; JSON on standard output says what its
socket counted. It keeps the connection until standard input ends."""

import fcntl
import json
import socket
import struct
import sys
import termios
import threading
import time

plan = json.loads(sys.argv[1])
MAX_PACING_RATE = 47
# struct tcp_info of linux/tcp.h, by offset: what is a u32, what a u64.
U32 = {"unacked": 24, "ssthresh": 76, "cwnd": 80, "rtt_us": 68, "mss": 16, "reordering": 88, "total_retrans": 100,
       "notsent": 144, "min_rtt_us": 148, "segs_out": 136, "data_segs_out": 156, "dsack_dups": 216, "reord_seen": 220,
       "snd_wnd": 228}
U64 = {"bytes_acked": 120, "busy_us": 168, "rwnd_limited_us": 176, "sndbuf_limited_us": 184, "bytes_sent": 200,
       "bytes_retrans": 208}


def info(connection):
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256).ljust(256, b"\0")
    found = {name: struct.unpack_from("=I", raw, at)[0] for name, at in U32.items()}
    found.update({name: struct.unpack_from("=Q", raw, at)[0] for name, at in U64.items()})
    found["ca_state"] = raw[1]
    return found


def options(connection):
    for name, level, number in [
        ("receive_buffer", socket.SOL_SOCKET, socket.SO_RCVBUF),
        ("send_buffer", socket.SOL_SOCKET, socket.SO_SNDBUF),
        ("max_segment", socket.IPPROTO_TCP, socket.TCP_MAXSEG),
        ("no_delay", socket.IPPROTO_TCP, socket.TCP_NODELAY),
    ]:
        if name in plan:
            connection.setsockopt(level, number, int(plan[name]))
    if "congestion" in plan:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, plan["congestion"].encode())
    if "pacing_bytes_per_second" in plan:
        connection.setsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, plan["pacing_bytes_per_second"])


def open_connection():
    family = socket.AF_INET6 if ":" in plan["server"] else socket.AF_INET
    end = socket.socket(family, socket.SOCK_STREAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    options(end)
    if plan["opens"]:
        end.settimeout(10)
        end.connect((plan["server"], plan["port"]))
        end.settimeout(None)
        return end
    end.bind((plan["server"], plan["port"]))
    end.listen(1)
    print("ready", flush=True)
    connection, _ = end.accept()
    options(connection)
    return connection


def timeval(seconds):
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


def sample(connection, samples, over):
    while not over.is_set():
        samples.append(info(connection))
        time.sleep(0.002)


def write(connection, until):
    sizes, every, answered = plan.get("writes", [65536]), plan.get("every_s", 0), plan.get("answered", False)
    pieces = [bytes(size) for size in sizes]
    blocked, at = 0.0, time.monotonic()
    while time.monotonic() < until:
        before = time.monotonic()
        for piece in pieces:
            connection.sendall(piece)
        blocked += time.monotonic() - before
        if answered and not connection.recv(1):
            break
        if every:
            at = max(at + every, time.monotonic() - every)
            time.sleep(max(0.0, at - time.monotonic()))
    return blocked


def send(connection):
    start, samples, over = time.monotonic(), [], threading.Event()
    sampler = threading.Thread(target=sample, args=(connection, samples, over))
    sampler.start()
    # Who is kept waiting in a write for ever is freed by the timeout. The socket stays a blocking one, as most are.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(plan["seconds"]))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(plan["seconds"]))
    blocked = None
    try:
        blocked = write(connection, start + plan["seconds"])
    except BlockingIOError:
        blocked = plan["seconds"]
    except (ConnectionError, BrokenPipeError):
        pass
    over.set()
    sampler.join()
    last, count = info(connection), max(1, len(samples))

    def share(holds):
        return sum(1 for one in samples if holds(one)) / count

    last.update(
        elapsed_s=time.monotonic() - start,
        blocked_s=blocked,
        samples=len(samples),
        drained=share(lambda one: one["notsent"] == 0),
        window_full=share(lambda one: one["notsent"] > 0 and one["unacked"] >= one["cwnd"]),
        nagle=share(lambda one: 0 < one["notsent"] < one["mss"] and 0 < one["unacked"] < one["cwnd"]),
        recovering=share(lambda one: one["ca_state"] >= 2),
        cwnd_mean=sum(one["cwnd"] for one in samples) / count,
        rtt_mean_us=sum(one["rtt_us"] for one in samples) / count,
    )
    return last


def receive(connection):
    most, every, start_at = plan.get("read", 1 << 18), plan.get("every_s", 0), plan.get("from_s", 0)
    answer, got, unread, reads = plan.get("answer_each", 0), 0, 0, 0
    start = time.monotonic()
    time.sleep(start_at)
    connection.settimeout(plan["seconds"] + 5)
    answered, at = 0, time.monotonic()
    held = start_at
    try:
        # The sender ends it, by a reset.
        while time.monotonic() < start + plan["seconds"] + 5:
            waiting = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, b"\0" * 4))[0]
            unread, reads = unread + waiting, reads + 1
            data = connection.recv(most)
            if not data:
                break
            got += len(data)
            while answer and got - answered >= answer:
                connection.sendall(b"x")
                answered += answer
            if every:
                at = max(at + every, time.monotonic() - every)
                pause = max(0.0, at - time.monotonic())
                held += pause
                time.sleep(pause)
    except (TimeoutError, ConnectionError):
        pass
    return {"received": got, "unread_mean": unread / max(1, reads), "elapsed_s": time.monotonic() - start, "held_s": held}


connection = open_connection()
report = send(connection) if plan["sends"] else receive(connection)
print(json.dumps(report), flush=True)
sys.stdin.read()
# Nothing is to be delivered any more.
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
connection.close()
