"""The table with its bounds, and the record: each row is printed and written as soon as it is known."""

import json
import pathlib
import statistics

from chat_report import digits

NAMES = ("direct", "floor", "hob", "litellm")
# Below this many, the interval of a 99th percentile has no upper end.
P99_NEEDS = 368


class Bound:
    """A bound of hob's figure, or of its ratio to the figure of another server."""

    def __init__(self, sense, value, to=None):
        self.sense, self.value, self.to = sense, value, to

    def judge(self, medians):
        """What was measured, and whether the bound is held. Both are None if a server has no figure."""
        ours, theirs = medians.get("hob"), medians.get(self.to) if self.to else 1
        measured = ours / theirs if ours is not None and theirs else None
        held = None if measured is None else (
            measured >= self.value if self.sense == "at least" else measured <= self.value)
        return {"of": f"hob / {self.to}" if self.to else "hob", "sense": self.sense, "value": self.value,
                "measured": measured, "held": held}

    def __str__(self):
        sign = "≥" if self.sense == "at least" else "≤"
        if not self.to:
            return f"{sign} {self.value:,g}"
        value = f"{self.value:g}" if self.value >= 1 else f"1/{1 / self.value:g}"
        return f"{sign} {value} × {self.to}"


class Report:
    def __init__(self, path, facts):
        self.path, self.facts, self.figures, self.blocks, self.notes = path, facts, [], [], []

    def begin(self):
        print("| median (least–most) | direct | floor | hob | litellm | hob / floor | hob / litellm | bound | held |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)

    def add(self, name, unit, runs, bounds=()):
        """`runs`: the figures of each server, by its name. A server without figures is left out."""
        runs = {who: figures for who, figures in runs.items() if figures}
        medians = {who: statistics.median(figures) for who, figures in runs.items()}
        verdicts = [bound.judge(medians) for bound in bounds]
        ratios = {who: medians["hob"] / medians[who] for who in ("floor", "litellm")
                  if "hob" in medians and medians.get(who)}
        self.figures.append({
            "name": name, "unit": unit, "bounds": verdicts, "hob_ratio_to": ratios,
            "of": {who: {"median": medians[who], "runs": runs[who]} for who in runs},
        })
        cells = [f"{name}, {unit}" if unit else name, *(spread(runs.get(who)) for who in NAMES),
                 *(f"{ratios[who]:.3f}" if who in ratios else "" for who in ("floor", "litellm")),
                 "; ".join(map(str, bounds)), "; ".join(held(verdict) for verdict in verdicts)]
        print(f"| {' | '.join(cells)} |", flush=True)
        self.write()

    def keep(self, who, cell, turn, block):
        """A block as it was measured, without each answer's own time."""
        kept = {key: value for key, value in block.items() if key != "ttfts_us"}
        self.blocks.append({"gateway": who, "cell": cell, "turn": turn} | kept)
        self.write()

    def say(self, sentence):
        self.notes.append(sentence)

    def end(self):
        verdicts = [bound["held"] for figure in self.figures for bound in figure["bounds"]]
        missing = verdicts.count(None)
        print()
        for note in self.notes:
            print(note)
        print(f"{verdicts.count(True)} of {len(verdicts) - missing} bounds held"
              + (f"; {missing} not measured." if missing else "."))
        self.write()

    def write(self):
        """Under another name first: a reader never finds half a file."""
        if self.path:
            record = self.facts | {"figures": self.figures, "notes": self.notes, "blocks": self.blocks}
            draft = pathlib.Path(f"{self.path}.new")
            draft.write_text(json.dumps(record, indent=1) + "\n")
            draft.rename(self.path)


def held(verdict):
    return {None: "not measured", True: "yes", False: "**no**"}[verdict["held"]]


def spread(figures):
    if not figures:
        return ""
    if len(figures) == 1:
        return short(figures[0])
    return f"{short(statistics.median(figures))} ({short(min(figures))}–{short(max(figures))})"


def short(value):
    return f"{value:.3f}" if abs(value) < 1 else f"{value:,.0f}" if value >= 1000 else digits(value)


def p99(figures):
    """Nearest rank; nothing where there are too few to tell."""
    if len(figures) < P99_NEEDS:
        return None
    return sorted(figures)[-(-len(figures) * 99 // 100) - 1]
