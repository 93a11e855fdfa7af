"""What `hob eval` costs on top of the model: `make bench-eval`.

Environment: HOB (the binary). `hob mock` answers, first without any delay to `ITEMS` items, then to `PACED` items at the
pace of a model. Prints the time that is hob's own (making items, sending, reading, checking and storing answers) and the
memory of `hob eval` as it goes on, in Markdown. Fails if a bound is missed. Needs only Python and Linux.
"""

import contextlib
import datetime
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HOB = os.environ["HOB"]
ITEMS = int(os.environ.get("ITEMS", "10000"))
PACED = int(os.environ.get("PACED", "40"))
# All families that start no program; `code` waits for Python.
TASKS = ["logic-grid", "arithmetic", "units", "extraction", "instructions", "tool-use", "needle", "absent"]
# 100 ms to the first token, and then 200 tokens a second: a slower model makes the share smaller.
PACE = ["--ttft-ms", "100", "--itl-ms", "5"]
# Share of the model's time.
OWN_MAX = 0.01
# Figures are kept for each item, and texts are not: prompt and answer alone have several thousand bytes.
BYTES_PER_ITEM_MAX = 2_000


@contextlib.contextmanager
def mock(words):
    """The address of a mock server."""
    server = subprocess.Popen([HOB, "mock", *words], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def resident(process, field="VmRSS"):
    """Bytes in memory, or the peak until now; None after the end."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return None


def answered(folder):
    """Answers in the file of the run that is going on."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob(".eval/*.jsonl"))


def evaluation(url, items, folder):
    """Runs it. Returns its answers, its memory by the number of answers so far, and its peak."""
    words = [HOB, "eval", "--target", url, "--model", "mock", "--thinking", "on", "--tasks", ",".join(TASKS)]
    words += ["--items", str(max(items // len(TASKS), 1)), "--out", str(folder)]
    memory, peak = [], 0
    with open(folder / "log", "w+") as log:
        run = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            while run.poll() is None:
                time.sleep(0.2)
                count, now = answered(folder), resident(run)
                peak = max(peak, resident(run, "VmHWM") or 0)
                # Afterwards the record and the report are made.
                if count and now and count < items // len(TASKS) * len(TASKS):
                    memory.append((count, now))
        finally:
            run.terminate()
            run.wait()
        if run.returncode:
            log.seek(0)
            sys.exit(log.read()[-2000:])
    [file] = folder.glob("**/*.answers.jsonl.gz")
    return [json.loads(line) for line in gzip.open(file, "rt")], memory, peak


def own_time(answers):
    """Milliseconds of an item that are hob's own, and milliseconds of its answer. Each answer notes when it was read."""
    at = [datetime.datetime.fromisoformat(answer["started"].replace("Z", "+00:00")) for answer in answers]
    whole = (at[-1] - at[0]).total_seconds() * 1e3
    model = sum(answer["total_ms"] for answer in answers[1:])
    count = len(answers) - 1
    return (whole - model) / count, model / count


def measured(words, items):
    with mock(words) as url, tempfile.TemporaryDirectory() as folder:
        return evaluation(url, items, pathlib.Path(folder))


def growth(memory, items):
    """Memory after a fifth of the items and after the last ones, and the bytes of each item between."""
    late = [one for one in memory if one[0] >= items / 5]
    if len(late) < 2 or late[0][0] == late[-1][0]:
        return None
    (first, before), (last, after) = late[0], late[-1]
    return first, before, last, after, (after - before) / (last - first)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The server and the evaluation must not stay.
    held = lambda is_held: "held" if is_held else "missed"
    answers, memory, peak = measured(["--ttft-ms", "0", "--itl-ms", "0"], ITEMS)
    own_ms, _ = own_time(answers)
    paced, _, _ = measured(PACE, PACED)
    paced_own_ms, model_ms = own_time(paced)
    share = paced_own_ms / model_ms
    fine = [share <= OWN_MAX]
    print("| `hob eval` against `hob mock` | measured | bound |\n|---|---|---|")
    print(f"| own time of an item, {len(answers)} items without delay | {own_ms:.2f} ms | |")
    print(f"| own time of an item, {len(paced)} items at a model's pace ({model_ms:.0f} ms) | {paced_own_ms:.2f} ms "
          f"= {share:.2%} of the model's time | ≤ {OWN_MAX:.0%}: {held(fine[0])} |")
    if (grown := growth(memory, len(answers))) is not None:
        first, before, last, after, each = grown
        fine.append(each <= BYTES_PER_ITEM_MAX)
        print(f"| memory after {first} and after {last} items | {before / 1e6:.0f} MB, {after / 1e6:.0f} MB: "
              f"{each:.0f} bytes an item | ≤ {BYTES_PER_ITEM_MAX} bytes: {held(fine[1])} |")
    else:
        print("| memory | the run was too short to see it | |")
    print(f"| peak, with record and report of all answers | {peak / 1e6:.0f} MB | |")
    sys.exit(not all(fine))


main()
