"""hob bench's client against a mock whose times are known, and AIPerf for the same load, taking turns.

Environment: CLIENT (the example of hob-bench: mock and client) and AIPERF (the peer's program; without it, the peer is
left out). The mock runs in a process of its own and keeps its own stamps, which are the truth. Prints a
table in Markdown with medians of all repetitions, and fails where a bound is missed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

USERS = 64
# The script of the mock, and the client's arguments.
RUNS = {
    "pace": ("ttft_ms=100,itl_ms=20", ["--tokens", "64", "--requests", "4"]),
    "fast": ("ttft_ms=100,itl_ms=2,tokens=256", ["--tokens", "256", "--requests", "4", "--itl-ms", "2"]),
    "stall": ("ttft_ms=100,itl_ms=20,stall_ms=500", ["--tokens", "64", "--requests", "2"]),
}
REQUESTS = 256


@contextlib.contextmanager
def mock(script):
    process = subprocess.Popen(
        [os.environ["CLIENT"], "mock", "--script", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)


def measure(name):
    script, arguments = RUNS[name]
    with mock(script) as url:
        done = subprocess.run(
            [os.environ["CLIENT"], "measure", "--url", url, "--users", str(USERS), *arguments],
            check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def peer_cpu_s():
    """Processor time of AIPerf, its processes included, for the load of `pace`."""
    aiperf = pathlib.Path(os.environ["AIPERF"])
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, mock(RUNS["pace"][0]) as url:
        subprocess.run([aiperf.with_name("python"), here / "client_tokenizer.py", folder], check=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [aiperf, "profile", "--model", "mock", "--url", url, "--endpoint-type", "chat", "--streaming",
             "--concurrency", str(USERS), "--request-count", str(REQUESTS), "--ui", "none",
             "--tokenizer", folder, "--artifact-dir", folder],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(what, values, bound, keeps):
    middle = statistics.median(values)
    verdict = "" if keeps(middle) else " **missed**"
    print(f"| {what} | {middle:.3f} | {min(values):.3f}–{max(values):.3f} | {bound}{verdict} |")
    return keeps(middle)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5, help="repetitions")
    parser.add_argument("--no-peer", action="store_true", help="hob's client alone")
    given = parser.parse_args()
    seen = {name: [] for name in RUNS}
    peer = []
    for _ in range(given.n):
        for name in RUNS:
            seen[name].append(measure(name))
        if not given.no_peer and os.environ.get("AIPERF"):
            peer.append(peer_cpu_s())
    def figures(name, field):
        return [run[field] for run in seen[name]]
    print(f"| {USERS} users, n = {given.n} | median | least–most | bound |\n|---|---|---|---|")
    kept = [
        row("TTFT error, mean, ms", figures("pace", "ttft_err_mean_ms"), "< 0.5", lambda x: x < 0.5),
        row("TTFT error, p99, ms", figures("pace", "ttft_err_p99_ms"), "< 3", lambda x: x < 3),
        row("error of the time per token, ms", [abs(x) for x in figures("pace", "tpot_err_mean_ms")],
            "≤ 0.05", lambda x: x <= 0.05),
        row("chunks/s followed, of those sent", figures("fast", "chunks_per_s"), "≥ 26,000",
            lambda x: x >= 26_000),
        row("sent", figures("fast", "chunks_per_s_true"), "", lambda _: True),
        row("gap p99 with a stall of 500 ms, ms", figures("stall", "gap_p99_ms"), "≥ 500",
            lambda x: x >= 500),
        row("stalls seen of 128", figures("stall", "stalls"), "128", lambda x: x == 128),
        row(f"CPU for {REQUESTS} requests, s", figures("pace", "cpu_s"), "", lambda _: True),
    ]
    if peer:
        kept.append(row("CPU of AIPerf for the same, s", peer, "", lambda _: True))
        share = statistics.median(figures("pace", "cpu_s")) / statistics.median(peer)
        kept.append(row("share of it", [share], "≤ 0.05", lambda x: x <= 0.05))
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
