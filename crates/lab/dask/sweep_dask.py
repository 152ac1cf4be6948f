#!/usr/bin/env python3
"""Runs a sweep of `linerate lab sweep` on many machines, by Dask distributed.

    sweep_dask.py FILE.toml --out FILE.csv --scheduler tcp://HOST:8786
    sweep_dask.py FILE.toml --out FILE.csv --local 2

The table is the same, byte for byte, as that of `linerate lab sweep FILE.toml`. A chunk of items is one task: what its worker
had not finished when it died is done again by another. Finished chunks lie in FILE.csv.parts/ until the table is whole, so a
driver that is started again goes on. The program and the sweep's file have the same path on every machine.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading


def work(program, file, first, last):
    """The rows of some items as CSV with a header: a task."""
    command = [program, "lab", "sweep", file, "--items", f"{first}-{last}", "--out", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def write(path, text):
    """Writes a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    with open(part, "w", newline="") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="the sweep")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="where the table goes")
    parser.add_argument("--linerate", default="linerate", help="the program, as every machine finds it")
    parser.add_argument("--chunk", type=int, default=1000, help="items of a task")
    parser.add_argument("--retries", type=int, default=3, help="times that a task is tried again")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--scheduler", help="address of a running Dask scheduler")
    where.add_argument("--local", type=int, metavar="N", help="N worker processes on this machine instead")
    return parser.parse_args()


def main():
    args = arguments()
    file = os.path.abspath(args.file)
    plan = subprocess.run([args.linerate, "lab", "sweep", file, "--plan"], capture_output=True, text=True)
    if plan.returncode != 0:
        sys.exit(plan.stderr.strip())
    plan = json.loads(plan.stdout)
    # Chunks of another sweep, or of this one before its file changed, have another name.
    parts = args.out.with_name(f"{args.out.name}.parts") / plan["digest"]
    parts.mkdir(parents=True, exist_ok=True)
    size = max(args.chunk, 1)
    chunks = [(first, min(first + size, plan["items"]) - 1) for first in range(0, plan["items"], size)]
    path = {chunk: parts / f"{chunk[0]}-{chunk[1]}.csv" for chunk in chunks}

    from dask.distributed import Client, LocalCluster, as_completed

    cluster = LocalCluster(n_workers=args.local, threads_per_worker=1, dashboard_address=None) if args.local else None
    client = Client(cluster or args.scheduler)
    for worker, pid in client.run(os.getpid).items():
        print(f"worker {worker} has process {pid}", file=sys.stderr, flush=True)
    missing = [chunk for chunk in chunks if not path[chunk].exists()]
    tasks = {client.submit(work, args.linerate, file, *one, retries=args.retries, pure=False): one for one in missing}
    done = len(chunks) - len(missing)
    for task, text in as_completed(tasks, with_results=True):
        write(path[tasks[task]], text)
        done += 1
        print(f"{done} of {len(chunks)} chunks are done", file=sys.stderr, flush=True)
    texts = [path[chunk].read_text() for chunk in chunks]
    header = texts[0].split("\n", 1)[0] + "\n" if texts else ""
    write(args.out, header + "".join(text.split("\n", 1)[1] for text in texts))
    for chunk in chunks:
        path[chunk].unlink()
    parts.rmdir()
    if not any(parts.parent.iterdir()):
        parts.parent.rmdir()
    leave(client, cluster)


def leave(client, cluster):
    """Closes what was opened; a cluster that is just starting a worker again may wait for ever, so not longer than this."""

    def close():
        client.close()
        if cluster:
            cluster.close()

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(timeout=10)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
