"""Reports of hob compared with llama-server: a table, a record as JSON, and what other processes did meanwhile.

Each figure is printed and written as soon as it is known, so a run that is broken off keeps its figures.
"""

import contextlib
import json
import os
import pathlib
import statistics


class Report:
    def __init__(self, path, facts):
        self.path, self.facts, self.figures, self.notes = path, facts, [], []

    def begin(self, repetitions):
        print(f"| median of {repetitions} | hob | llama-server | ratio | least to most | bound | held |")
        print("|---|---|---|---|---|---|---|", flush=True)

    def add(self, name, unit, runs, sense=None, bound=None):
        """`sense` says what the bound limits: "at least" or "at most" the ratio, "hob at most" hob's own median."""
        ours, theirs = (statistics.median(runs[server]) for server in ("hob", "llama-server"))
        pairs = [a / b for a, b in zip(runs["hob"], runs["llama-server"])]
        judged = ours if (sense or "").startswith("hob") else ours / theirs
        held = None if sense is None else judged >= bound if sense.endswith("least") else judged <= bound
        self.figures.append({
            "name": name, "unit": unit, "hob": {"median": ours, "runs": runs["hob"]},
            "llama_server": {"median": theirs, "runs": runs["llama-server"]}, "ratio": ours / theirs,
            "bound": None if sense is None else {"of": "hob" if sense.startswith("hob") else "ratio",
                                                 "sense": sense.split()[-1], "value": bound, "held": held},
        })
        cells = [f"{name}, {unit}", digits(ours), digits(theirs), f"{ours / theirs:.3f}",
                 f"{min(pairs):.2f}–{max(pairs):.2f}", f"{sense} {bound:.2f}" if sense else "",
                 {None: "", True: "yes", False: "**no**"}[held]]
        print(f"| {' | '.join(cells)} |", flush=True)
        self.write()

    def say(self, sentence):
        self.notes.append(sentence)

    def end(self):
        bounds = [figure["bound"]["held"] for figure in self.figures if figure["bound"]]
        print()
        for note in self.notes:
            print(note)
        print(f"{sum(bounds)} of {len(bounds)} bounds held.")
        self.write()

    def write(self):
        """Writes another file first and renames it, so that a reader never finds half a file."""
        if self.path:
            record = self.facts | {"figures": self.figures, "notes": self.notes}
            draft = pathlib.Path(f"{self.path}.new")
            draft.write_text(json.dumps(record, indent=1) + "\n")
            draft.rename(self.path)


def digits(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


class Load:
    """How much of the machine's time other processes took meanwhile."""

    def __init__(self):
        self.started = os.getloadavg()
        self.first = self.look()

    def look(self):
        cells = [int(cell) for cell in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle, stolen = cells[3] + cells[4], cells[7]
        # The servers are children of this process.
        own = cpu_ticks(os.getpid())
        return sum(cells), sum(cells) - idle - stolen, stolen, own

    def sentence(self):
        total, busy, stolen, own = (b - a for a, b in zip(self.first, self.look()))
        others = max(0, busy - own)
        return (
            f"Load average {self.started[0]:.1f} before and {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores; "
            f"other processes had {others / total:.0%} of the machine, its host took {stolen / total:.0%}."
        )


def family(pid):
    """A process and its descendants; a child belongs to the thread that started it."""
    yield int(pid)
    with contextlib.suppress(OSError):
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from family(child)


def cpu_ticks(pid):
    """Processor time of a process and its descendants, also of those that have ended and were waited for."""
    ticks = 0
    for member in set(family(pid)):
        with contextlib.suppress(OSError):
            cells = pathlib.Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(cell) for cell in cells[11:15])
    return ticks


def memory_mb(pid, field, word=""):
    """Megabytes of a process and its descendants; with a word, only of those that have it in their command line."""
    total = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            if word and word not in pathlib.Path(f"/proc/{member}/cmdline").read_text().split("\0"):
                continue
            lines = pathlib.Path(f"/proc/{member}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
    return total
