"""Time to first audible sample, at the client, of hob and of fastkokoro 0.7.0 on the same weights.

Environment: HOB (the binary), HOB_HOME (a home with the speech model alone).
Requests take turns, hob then peer, so that a machine whose speed drifts slows both. Prints a table in
Markdown. Both servers run all the time, and only one is asked at a time.
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

from chat_client import READY_SECONDS_MAX, Server, servers_of_a_run
from chat_report import memory_mb

AUDIBLE = 32768 * 10 ** (-50 / 20)
SENTENCES = (
    "The salt breeze came across from the sea and the girl at the booth sold fifty bonds before "
    "the clock struck twelve. "
)
TEXTS = {
    "two short sentences": "Hello there, my friend. How are you today?",
    "first sentence of 110 characters": "The salt breeze came across from the sea, and the girl at the "
    "booth sold fifty bonds before the clock struck one. She went home.",
    "one sentence of 215 characters": "In the beginning there was nothing but a small house on the hill, "
    "and in that house lived an old man who had never seen the sea, and every morning he would look to "
    "the west and wonder what lay beyond the mountains.",
}


def ask(port, text, is_whole=True):
    """Seconds to the first audible sample, and to the end of the answer, or until the client leaves at that sample."""
    body = json.dumps(
        {"model": "kokoro", "input": text, "voice": "af_heart", "response_format": "pcm", "stream": True}
    )
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    started = time.perf_counter()
    connection.request("POST", "/v1/audio/speech", body, {"content-type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {response.read()[:300]!r}")
    first, received = None, b""
    while (is_whole or first is None) and (piece := response.read1(65536)):
        now = time.perf_counter()
        if first is None:
            received += piece
            samples = numpy.frombuffer(received[: len(received) // 2 * 2], "<i2")
            if (numpy.abs(samples.astype(int)) > AUDIBLE).any():
                first = now - started
    ended = time.perf_counter()
    response.close()
    connection.close()
    if first is None:
        raise RuntimeError("no audible sample")
    return first, ended - started


def start_hob(log):
    return Server("hob", [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"], log)


def start_peer(program, model, voices, folder, log):
    settings = {
        "FASTKOKORO_MODEL_PATH": model,
        "FASTKOKORO_VOICES_PATH": voices,
        "FASTKOKORO_CACHE_DIR": folder,
        "FASTKOKORO_HOST": "127.0.0.1",
    }
    # It reads its port from the environment only.
    return Server("fastkokoro", ["env", "FASTKOKORO_PORT={port}", str(program)], log, settings)


def prepare(home, folder):
    """The published graph and hob's own voices, as the peer wants them."""
    model = next(home.glob("downloads/kokoro/**/model.onnx"))
    voices = next(home.glob("models/kokoro/*/voices"))
    styles = {file.stem: numpy.fromfile(file, "<f4").reshape(510, 1, 256) for file in voices.iterdir()}
    shutil.copy(model, f"{folder}/model.onnx")
    numpy.savez(f"{folder}/voices.npz", **styles)
    return f"{folder}/model.onnx", f"{folder}/voices.npz"


def row(name, ours, theirs, bound):
    def cells(values):
        ordered = sorted(values)
        return statistics.median(ordered) * 1000, ordered[int(0.95 * (len(ordered) - 1))] * 1000

    (m, p), (pm, pp) = cells(ours), cells(theirs)
    return f"| {name} | {m:.0f} / {p:.0f} | {pm:.0f} / {pp:.0f} | {m / pm:.3f} | {bound} |"


def measure(hob, peer, n):
    bounds = dict(zip(TEXTS, ("≤ 0.35", "≤ 0.12", "≤ 0.05")))
    print(f"| time to first audible sample, median / p95 of {n}, ms | hob | fastkokoro | ratio | bound |")
    print("|---|---|---|---|---|")
    totals = [], []
    for name, text in TEXTS.items():
        ours, theirs = [], []
        for turn in range(n + 2):
            a, b = ask(hob, text), ask(peer, text)
            if turn >= 2:
                ours.append(a[0])
                theirs.append(b[0])
                totals[0].append(a[1])
                totals[1].append(b[1])
        print(row(name, ours, theirs, bounds[name]), flush=True)
    # All three texts of a turn together.
    sums = [[sum(times[turn::n]) for turn in range(n)] for times in totals]
    print(row("all three texts to their last sample (total time)", *sums, "≤ 1"), flush=True)
    start = "The birch canoe slid on the smooth planks of the old and quiet harbour. "
    texts = [(start + SENTENCES)[:100], (start + SENTENCES * 1000)[:100_000]]
    short, long = [], []
    for _ in range(n):
        for times, text in zip((short, long), texts):
            times.append(ask(hob, text, is_whole=False)[0])
            # The window that was running when the client left is rendered to its end.
            time.sleep(1)
    print(row("100,000 characters compared with 100 (both hob)", long, short, "≤ 1.2"), flush=True)


def cold_start(log):
    """Process start to first audible sample, the models on disk."""
    started = time.perf_counter()
    with servers_of_a_run() as servers:
        hob = start_hob(log)
        servers.append(hob)
        while True:
            try:
                ask(hob.port, "Hello there.", is_whole=False)
                return time.perf_counter() - started
            except (OSError, RuntimeError, http.client.HTTPException):
                if hob.process.poll() is not None:
                    raise RuntimeError(f"hob serve ended with {hob.process.returncode}") from None
                if time.perf_counter() - started > READY_SECONDS_MAX:
                    raise RuntimeError(f"hob said nothing within {READY_SECONDS_MAX} s") from None
                time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=20, help="counted requests of each kind")
    n = parser.parse_args().n
    home = pathlib.Path(os.environ["HOB_HOME"])
    # Its log is on standard error, so that the table is all that standard output gets.
    subprocess.run([os.environ["HOB"], "pull", "kokoro"], stdout=sys.stderr, check=True)
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w") as log:
        cold = sorted(cold_start(log) for _ in range(5))
        model, voices = prepare(home, folder)
        with servers_of_a_run() as servers:
            servers.append(start_hob(log))
            servers.append(start_peer(pathlib.Path(sys.executable).with_name("fastkokoro"), model, voices, folder, log))
            hob, peer = servers
            hob.wait_until("/ready")
            peer.wait_until("/health")
            settled = memory_mb(hob.process.pid, "VmRSS")
            measure(hob.port, peer.port, n)
            print(f"\nhob's memory, server and worker: {settled:.0f} MB settled after load (bound 330), "
                  f"{memory_mb(hob.process.pid, 'VmRSS'):.0f} MB after the run, "
                  f"{memory_mb(hob.process.pid, 'VmHWM'):.0f} MB peak; "
                  f"the peer's: {memory_mb(peer.process.pid, 'VmRSS'):.0f} MB.")
            print(f"Process start to first audible sample: {cold[2] * 1000:.0f} ms, median of 5 (bound 800).")


if __name__ == "__main__":
    main()
