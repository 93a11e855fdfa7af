"""Spoken questions to hob and to a pipeline of faster-whisper, llama-server and fastkokoro, on the same weights.

Environment: HOB, LLAMA_SERVER and FASTKOKORO (the binaries), HOB_HOME (a home with the default models). All servers run
all the time. The same recordings are said to both, question by question and each first as often as the other, so that a
machine whose speed drifts slows both. Prints a table in Markdown. The questions and times are those of `hob bench voice`.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

from chat import cpu_model, weights_of
from chat_client import Server, fetch, servers_of_a_run
from chat_report import Load, cpu_ticks
from hear import weights
from speech import prepare, start_hob, start_peer
from voice_hob import Hob
from voice_peer import Pipeline
from voice_sound import STAGES, Question, say

SENTENCES = pathlib.Path(__file__).parents[2] / "crates/hob-bench/src/transcription/spoken.rs"
INSTRUCTIONS = "You are a voice assistant. Answer in one or two short sentences."
VOICE = "af_heart"
VOICES = 4
MODELS = ("kokoro", "smollm2", "whisper-base", "smart-turn")
CONTEXT = 4096
RATIO_MAX = 0.5
PAUSE_S, PAUSES_MAX, IDLE_TICKS = 0.3, 100, 2


def questions(port):
    """The sentences of `hob bench voice`, spoken by the same voices."""
    listed = re.search(r"pub const SENTENCES: .*? = \[\n(.*?)\n\];", SENTENCES.read_text(), re.DOTALL)
    sentences = [json.loads(line.strip().rstrip(",")) for line in listed[1].splitlines()]
    voices = json.loads(fetch(port, "/v1/audio/voices"))["voices"][:VOICES]
    names = [voice if isinstance(voice, str) else voice["id"] for voice in voices]
    for number, text in enumerate(sentences):
        sound = fetch(port, "/v1/audio/speech", {"model": "kokoro", "input": text, "voice": names[number % len(names)],
                                                 "response_format": "pcm"})
        yield Question(numpy.frombuffer(sound, "<i2"))


def detector_of(home):
    """Silero VAD as hob stores it. The one in faster-whisper is older, and hears the end of speech sooner."""
    [found] = pathlib.Path(home).glob("models/smart-turn/*/silero_vad.onnx")
    return found


def settle():
    """Waits until nothing is computed any more of an answer that its listener has left."""
    for _ in range(PAUSES_MAX):
        before = cpu_ticks(os.getpid())
        time.sleep(PAUSE_S)
        if cpu_ticks(os.getpid()) - before <= IDLE_TICKS:
            return
    raise RuntimeError(f"the servers still compute after {PAUSES_MAX * PAUSE_S:.0f} s")


def ask(listener, question):
    settle()
    turn = say(question, listener.begin())
    turn.end()
    if turn.failure:
        return {"failure": turn.failure}
    return {"whole": turn.whole_ms(), **turn.stages}


def measure(hob, peer, asked, runs):
    """Each turn of each of them. The first run warms up, and does not count."""
    turns = {"hob": [], "pipeline": []}
    for run in range(runs + 1):
        for number, question in enumerate(asked):
            pair = [("hob", hob), ("pipeline", peer)]
            for name, listener in pair[:: 1 if (run + number) % 2 else -1]:
                turn = ask(listener, question)
                if run:
                    turns[name].append({"run": run, "question": number + 1, **turn})
        print(f"run {run} of {runs}", file=sys.stderr, flush=True)
    return turns


def percentiles(turns, name):
    """The median and the 95th percentile of those with an answer."""
    values = sorted(turn[name] for turn in turns if name in turn)
    return statistics.median(values), values[-(-len(values) * 95 // 100) - 1]


def answered_by_both(turns):
    """The turns of questions that both answered in a run. A question that only one can answer moves no median."""
    places = [{(turn["run"], turn["question"]) for turn in all_turns if "whole" in turn} for all_turns in turns.values()]
    both = set.intersection(*places)
    return {name: [turn for turn in all_turns if (turn["run"], turn["question"]) in both]
            for name, all_turns in turns.items()}


def report(turns):
    answered = answered_by_both(turns)
    if not all(answered.values()):
        reasons = {turn["failure"] for all_turns in turns.values() for turn in all_turns if "failure" in turn}
        raise RuntimeError(f"no answers: {'; '.join(sorted(reasons))}")
    print("| median / p95, ms | hob | pipeline | ratio of the medians |\n|---|---|---|---|")
    figures = {}
    for name in ("whole", *STAGES):
        (ours, ours95), (theirs, theirs95) = (percentiles(answered[server], name) for server in ("hob", "pipeline"))
        ratio = ours / theirs if theirs else None
        figures[name] = {"hob": {"p50": ours, "p95": ours95}, "pipeline": {"p50": theirs, "p95": theirs95}, "ratio": ratio}
        title = "end of speech to first audible sample" if name == "whole" else f"– {name}"
        print(f"| {title} | {ours:.0f} / {ours95:.0f} | {theirs:.0f} / {theirs95:.0f} | "
              f"{'–' if ratio is None else f'{ratio:.3f}'} |", flush=True)
    print()
    for name, all_turns in turns.items():
        failures = [turn["failure"] for turn in all_turns if "failure" in turn]
        counted = ", ".join(f"{failures.count(reason)} × {reason}" for reason in sorted(set(failures)))
        print(f"{name}: {len(all_turns) - len(failures)} turns answered, {len(failures)} not{': ' if counted else ''}{counted}.")
    print(f"The table has the {len(answered['hob'])} turns that both answered.")
    held = figures["whole"]["ratio"] <= RATIO_MAX
    print(f"Ratio {figures['whole']['ratio']:.3f}, bound ≤ {RATIO_MAX}: {'held' if held else '**missed**'}.")
    return figures


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="counted runs of all 12 questions (default 9: 108 turns)")
    parser.add_argument("--turn-end", choices=("silence", "semantic"), default="silence",
                        help="how hob finds the end of a question (default: as the pipeline, after a silence)")
    parser.add_argument("--silence-ms", type=int, default=250, help="the silence that ends a question (default 250)")
    parser.add_argument("--beam", type=int, default=1, help="beam size of faster-whisper (default 1: its fastest)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each part (default: all cores)")
    parser.add_argument("--json", metavar="FILE", help="write the figures and all turns there too")
    parser.add_argument("--log", metavar="FILE", help="keep the servers' output in this file")
    return parser.parse_args()


def start(given, folder, log):
    """hob, llama-server and fastkokoro, and what each is asked for when it is ready."""
    home = pathlib.Path(os.environ["HOB_HOME"])
    model, voices = prepare(home, folder)
    threads = str(given.threads)
    chat = [os.environ["LLAMA_SERVER"], "--model", str(weights_of(home)), "--host", "127.0.0.1", "--port", "{port}",
            "--ctx-size", str(CONTEXT), "--parallel", "1", "--threads", threads, "--threads-batch", threads, "--jinja",
            "--no-webui", "--offline"]
    yield start_hob(log), "/ready"
    yield Server("llama-server", chat, log), "/health"
    yield start_peer(os.environ["FASTKOKORO"], model, voices, folder, log), "/health"


def main():
    given = arguments()
    for model in MODELS:
        subprocess.run([os.environ["HOB"], "pull", model], stdout=sys.stderr, check=True)
    with (tempfile.TemporaryDirectory() as folder, open(given.log or f"{folder}/log", "w") as log,
          servers_of_a_run() as servers):
        for server, path in start(given, folder, log):
            servers.append(server)
            server.wait_until(path)
        detection = {"type": "semantic_vad"} if given.turn_end == "semantic" else {
            "type": "server_vad", "silence_duration_ms": given.silence_ms}
        shared = {"instructions": INSTRUCTIONS, "voice": VOICE}
        whisper = pathlib.Path(folder) / "whisper"
        whisper.mkdir()
        hob = Hob(servers[0].port, shared | {"turn_detection": detection})
        peer = Pipeline(servers[1].port, servers[2].port, shared | {
            "weights": str(weights(whisper)), "detector": str(detector_of(os.environ["HOB_HOME"])),
            "threads": given.threads, "beam": given.beam, "silence_ms": given.silence_ms})
        load = Load()
        turns = measure(hob, peer, list(questions(servers[0].port)), given.runs)
        figures = report(turns)
        print(load.sentence())
        if given.json:
            facts = {"schema": "hob-bench-voice-peers/1", "cpu": cpu_model(), "cores": os.cpu_count(),
                     "arguments": vars(given), "figures": figures, "turns": turns}
            pathlib.Path(given.json).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
