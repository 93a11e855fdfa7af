"""hob as a gateway, compared with LiteLLM's proxy and with a minimal relay (the floor), in one run.

Environment: GATEWAY (the example of hob-bench: mock, floor, load), HOB and LITELLM (the programs; one that is not
set is left out). All run all the time and only one is asked at a time, in an order that rotates, so that a machine
whose speed drifts slows all. hob checks a key, writes its ledger and counts its metrics meanwhile. Prints a
table in Markdown.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time
from typing import NamedTuple

from chat import cpu_model
from chat_client import servers_of_a_run
from chat_report import Load, memory_mb
from gateway_report import NAMES, Bound, Report, p99
from gateway_servers import Servers

# Added to the time of a block of load, for what its process does before and after.
BLOCK_SECONDS_MAX = 90
STARTS = {"floor": 5, "hob": 5, "litellm": 1}


class Cell(NamedTuple):
    """What is asked in a block."""

    mode: str
    model: str
    concurrency: int
    # An answer that is not complete at the end of a block does not count, so slow ones get time for one more.
    extra_s: float = 0


CELLS = {
    "whole": Cell("whole", "small", 1),
    "rps": Cell("whole", "small", 16),
    "stream": Cell("stream", "fast", 16),
    "paced": Cell("stream", "paced", 1, 0.7),
    "paced16": Cell("stream", "paced", 16, 0.7),
}


class Bench:
    def __init__(self, servers, given, report):
        self.servers, self.n, self.seconds, self.report = servers, given.n, given.seconds, report
        self.turn, self.errors, self.client_share = 0, {}, 0

    def rounds(self, cell):
        """{server: [block of each round]}; the first round warms up and is not counted."""
        blocks = {server.name: [] for server in self.servers}
        for turn in range(self.n + 1):
            for server in self.next():
                block = self.block(server, CELLS[cell])
                if turn:
                    blocks[server.name].append(block)
                    self.take_note(server, cell, turn, block)
        return blocks

    def next(self):
        """Each is as often first as second, third and last."""
        self.turn += 1
        first = self.turn % len(self.servers)
        return self.servers[first:] + self.servers[:first]

    def take_note(self, server, cell, turn, block):
        self.report.keep(server.name, cell, turn, block)
        self.errors[server.name] = self.errors.get(server.name, 0) + block["errors"]
        # Nothing but the load can be the limit of the mock alone.
        if server.name != "direct":
            self.client_share = max(self.client_share, block["client_cpu_share"] or 0)

    def block(self, server, cell):
        command = [
            os.environ["GATEWAY"], "load", "--address", f"127.0.0.1:{server.port}", "--mode", cell.mode,
            "--model", server.models[cell.model], "--concurrency", str(cell.concurrency),
            "--seconds", str(self.seconds + cell.extra_s),
            *(["--key", server.key] if server.key else []),
            # The mock server's own time is not a cost of a gateway.
            *(["--pid", str(server.pid)] if server.name != "direct" else []),
        ]
        limit = self.seconds + cell.extra_s + BLOCK_SECONDS_MAX
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        if run.returncode:
            raise RuntimeError(f"{server.name}: {run.stderr.strip()}")
        block = json.loads(run.stdout)
        if not block["requests"]:
            raise RuntimeError(f"{server.name}: {block['errors']} errors and no answer")
        return block

    def whole(self):
        blocks = self.rounds("whole")
        times = figures(blocks, lambda block: block["latency_us"]["p50"] / 1000)
        self.report.add("answer, one client, p50", "ms", times)
        self.report.add("added to direct", "ms", added(times), [Bound("at most", 0.2)])
        self.report.add("CPU of a request, one client", "µs", cpu(blocks), CPU_REQUEST)

    def rps(self):
        blocks = self.rounds("rps")
        self.report.add("requests/s, 16 clients", "", figures(blocks, lambda block: block["requests_per_s"]))
        self.report.add("CPU of a request, 16 clients", "µs", cpu(blocks), CPU_REQUEST)

    def stream(self):
        blocks = self.rounds("stream")
        events = figures(blocks, lambda block: block["events_per_s"])
        self.report.add("events/s, 16 streams", "", events, [Bound("at least", 100_000)])
        self.report.add("CPU of a stream of 68 events", "µs", cpu(blocks), [Bound("at most", 3, "floor")])

    def paced(self):
        self.pauses("1 stream, 10 ms apart", self.rounds("paced"))

    def paced16(self):
        blocks = self.rounds("paced16")
        self.pauses("16 streams, 10 ms apart", blocks)
        # Of all rounds together: one has too few answers for a 99th percentile.
        tails = {name: p99([ttft / 1000 for block in mine for ttft in block["ttfts_us"]])
                 for name, mine in blocks.items()}
        if None in tails.values():
            self.report.say("Too few answers for a 99th percentile: more rounds or longer blocks give them.")
        late = {name: [tail - tails["direct"]] for name, tail in tails.items() if tail and name != "direct"
                and tails["direct"]}
        self.report.add("TTFT, 16 streams, p99 added to direct", "ms", late, [Bound("at most", 1)])

    def pauses(self, name, blocks):
        first = figures(blocks, lambda block: block["ttft_us"]["p50"] / 1000)
        gap = figures(blocks, lambda block: block["gap_us"]["p50"] / 1000)
        self.report.add(f"TTFT, {name}, p50", "ms", first)
        self.report.add(f"largest gap, {name}, p50", "ms", gap)


CPU_REQUEST = (Bound("at most", 100), Bound("at most", 1 / 60, "litellm"), Bound("at most", 3, "floor"))
MEASURES = {name: getattr(Bench, name) for name in CELLS}


def figures(blocks, figure):
    return {name: [figure(block) for block in mine] for name, mine in blocks.items()}


def added(times):
    """What each adds to the mock's own time in the same round."""
    return {name: [mine - bare for mine, bare in zip(times[name], times["direct"])]
            for name in times if name != "direct"}


def cpu(blocks):
    asked = {name: mine for name, mine in blocks.items() if name != "direct"}
    return figures(asked, lambda block: block["cpu_us_per_request"])


def start_all(servers, names, running):
    """Starts each server, the fast ones several times; the last start stays. {name: [seconds to the first answer]}"""
    running.append(servers.start_mock())
    running[0].wait()
    ready = {}
    for name in names:
        for start in range(STARTS[name]):
            if start:
                running[-1].stop()
                running.pop()
            running.append(servers.start(name))
            ready.setdefault(name, []).append(running[-1].wait().ready_s)
    return ready


def memory(report, running, ready):
    gateways = running[1:]
    report.add("memory after the first answer", "MB", {server.name: [server.idle_mb] for server in gateways},
               [Bound("at most", 40)])
    report.add("memory after the run", "MB", {server.name: [memory_mb(server.pid, "VmRSS")] for server in gateways},
               [Bound("at most", 40)])
    report.add("start to the first answer", "s", ready, [Bound("at most", 0.5)])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=7, help="counted blocks of each (default 7; fewer are for a try)")
    parser.add_argument("--seconds", type=float, default=2, help="of a block (default 2)")
    parser.add_argument("--cores", type=int, default=2, help="that all of them share (default 2)")
    parser.add_argument("--hob", default=os.environ.get("HOB"), help="the hob program (default: $HOB, else left out)")
    parser.add_argument("--no-peer", action="store_true", help="leave LiteLLM out")
    parser.add_argument("--out", metavar="DIR", help="write the figures into this folder too, after each block")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="some of the blocks")
    parser.add_argument("--log", help="keep the servers' output in this file")
    given = parser.parse_args()
    if given.n < 1:
        parser.error("-n must be at least 1")
    return given


def record(given):
    """Where the figures go: a new file for each run."""
    if not given.out:
        return None
    folder = pathlib.Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}-gateway.json"


def pin(cores):
    """Limits this process, and all that it starts, to so many cores. None if the system cannot do this."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        return len(os.sched_getaffinity(0))
    return None


def facts(given, names, cores):
    return {
        "schema": "hob-bench-gateway/1",
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "repetitions": given.n,
        "block_seconds": given.seconds,
        "order": "rotating",
        "cpu": cpu_model(),
        "cores": cores,
        "asked": ["direct", *names],
        "peer": "litellm 1.106.2, 1 worker, master key, no database",
        "hob": "key, ledger and metrics on",
    }


def main():
    given = arguments()
    wanted = {"floor": True, "hob": given.hob, "litellm": os.environ.get("LITELLM") and not given.no_peer}
    names = [name for name in NAMES if wanted.get(name)]
    cores = pin(given.cores)
    with (tempfile.TemporaryDirectory() as folder, open(given.log or f"{folder}/log", "w") as log,
          servers_of_a_run() as running):
        ready = start_all(Servers(folder, log, given.hob), names, running)
        load, report = Load(), Report(record(given), facts(given, names, cores))
        report.begin()
        bench = Bench(running, given, report)
        for name in given.only:
            MEASURES[name](bench)
        memory(report, running, ready)
        report.say("Errors: " + ", ".join(f"{name} {count}" for name, count in bench.errors.items()) + ".")
        report.say(f"Before a gateway, the load itself took at most {bench.client_share:.0%} of a core.")
        report.say(load.sentence())
        report.end()


if __name__ == "__main__":
    main()
