"""A spoken question and its answer: hob, and faster-whisper, llama-server and fastkokoro joined by hand.

Environment: HOB, LLAMA_SERVER, FASTKOKORO (the programs), HOB_HOME (a home with the default models). All use the same
weights. The parts take turns: a round of all questions by hob, then one by the others. The parts joined by hand get an ideal
detector of the end: exactly 250 ms after the last sound above -40 dB. Then they transcribe, ask the chat model, and speak its
first sentence as soon as it is complete. hob uses `server_vad` with 250 ms, over its Realtime API. Prints a table in Markdown.
"""

import argparse
import http.client
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import wave

import faster_whisper
import numpy

import chat
import speech
from chat_client import MODEL, Server
from hear import weights, write_wav

QUESTIONS = (
    "What is the capital of France?",
    "How many legs does a spider have?",
    "Who wrote Romeo and Juliet?",
    "Why is the sky blue?",
    "What should I cook for dinner tonight?",
    "How do I boil an egg?",
    "Which planet is the largest?",
    "When was the first world war?",
    "Tell me something about the ocean.",
    "How far away is the moon?",
    "What is the best time to plant tomatoes?",
    "Can you explain how a battery works?",
)
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george")
SYSTEM = "You are a voice assistant. Answer in one or two short sentences."
SILENCE_S = 0.25
VOICED = 328
RATE_HZ = 24_000
ANSWER_TOKENS = 64


def spoken(port, folder):
    """The questions as files, and hob's list of them."""
    clips = []
    for number, text in enumerate(QUESTIONS):
        body = {"model": "kokoro", "input": text, "voice": VOICES[number % len(VOICES)], "response_format": "pcm"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/audio/speech", json.dumps(body).encode(),
                                       {"content-type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            file = write_wav(f"{folder}/question-{number}.wav", answer.read(), RATE_HZ)
        clips.append({"file": file, "text": text, "speaker": VOICES[number % len(VOICES)]})
    pathlib.Path(f"{folder}/questions.yaml").write_text(json.dumps({"clips": clips}))
    return [clip["file"] for clip in clips]


class Joined:
    """The parts of others, one after the other."""

    def __init__(self, folder, log):
        whisper = pathlib.Path(folder) / "whisper"
        whisper.mkdir()
        home = pathlib.Path(os.environ["HOB_HOME"])
        threads = len(os.sched_getaffinity(0))
        self.whisper = faster_whisper.WhisperModel(str(weights(whisper)), device="cpu", compute_type="int8", cpu_threads=threads)
        self.llama = chat.peers(chat.weights_of(home), log, threads, "auto")
        self.kokoro_port = speech.free_port()
        model, voices = speech.prepare(home, folder)
        self.kokoro = speech.start_peer(self.kokoro_port, model, voices, folder, log)
        self.llama.wait_until("/health")
        speech.wait_for(self.kokoro_port, "/health", self.kokoro)

    def answer(self, file):
        """Milliseconds after the true end of the question: of each stage, and of the first audible sample."""
        with wave.open(file) as sound:
            samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2")
        end = int(numpy.flatnonzero(numpy.abs(samples.astype(int)) > VOICED)[-1]) + 1 + int(SILENCE_S * RATE_HZ)
        # What the microphone has sent when the silence has lasted.
        heard = numpy.concatenate([samples, numpy.zeros(end, "<i2")])[:end]
        packed = io.BytesIO()
        with wave.open(packed, "wb") as sound:
            sound.setparams((1, 2, RATE_HZ, 0, "NONE", None))
            sound.writeframes(heard.tobytes())
        packed.seek(0)
        begun = time.perf_counter()
        segments, _ = self.whisper.transcribe(packed, language="en")
        text = "".join(segment.text for segment in segments).strip()
        transcribed = time.perf_counter()
        sentence = self.first_sentence(text)
        written = time.perf_counter()
        first = speech.first_of(self.kokoro_port, sentence)
        times = (SILENCE_S, transcribed - begun, written - transcribed, first)
        return [1000 * seconds for seconds in (*times, sum(times))]

    def first_sentence(self, question):
        body = {
            "model": MODEL, "stream": True, "temperature": 0, "max_tokens": ANSWER_TOKENS, "cache_prompt": True,
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.llama.port, timeout=600)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        said = ""
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            said += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
            ends = [at for at, letter in enumerate(said[:-1]) if letter in ".?!" and said[at + 1].isspace()]
            if ends:
                connection.close()
                return said[: ends[0] + 1]
        return said.strip() or "I do not know."

    def stop(self):
        self.llama.stop()
        self.kokoro.terminate()
        self.kokoro.wait()


def hobs_turns(port, folder):
    """hob's record of one round of all questions."""
    command = [os.environ["HOB"], "bench", "voice", "--json", "--out", f"{folder}/records", "--set", f"{folder}/questions.yaml",
               "--target", f"http://127.0.0.1:{port}", "--turn-end", "silence", "--silence-ms", str(int(SILENCE_S * 1000)),
               "--runs-min", "1", "--runs-max", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    [record] = [json.loads(line) for line in done.stdout.splitlines()]
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=4, help="rounds of all questions")
    args = parser.parse_args()
    subprocess.run([os.environ["HOB"], "pull"], stdout=sys.stderr, check=True)
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w") as log:
        hob = Server("hob", [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"], log)
        joined = None
        try:
            hob.wait_until("/ready")
            files = spoken(hob.port, folder)
            joined = Joined(folder, log)
            [joined.answer(file) for file in files[:3]]
            records, rounds = [], []
            for _ in range(args.n):
                records.append(hobs_turns(hob.port, folder))
                rounds.append([joined.answer(file) for file in files])
            report(records, rounds)
        finally:
            hob.stop()
            if joined:
                joined.stop()


STAGES = {
    "endpoint": "to the end of the turn",
    "stt": "to the transcript",
    "llm_ttfat": "to the first text (joined: to the end of the first sentence)",
    "tts_ttfa": "to the first audible sample",
}


def report(records, rounds):
    """Medians of each round, and of these the median."""
    ours = {name: statistics.median(record["voice"]["stages_ms"][name] for record in records) for name in STAGES}
    stages = [statistics.median(statistics.median(turn[at] for turn in turns) for turns in rounds) for at in range(5)]
    answered = sum(record["voice"]["turns"] for record in records)
    print(f"| median of {len(rounds)} rounds of {len(QUESTIONS)} questions, ms | hob | joined by hand | ratio |\n|---|---|---|---|")
    whole = statistics.median(record["voice"]["ttfa_ms"]["p50"] for record in records)
    print(f"| end of speech to first audible sample | {whole:.0f} | {stages[4]:.0f} | {whole / stages[4]:.2f} |")
    slowest = max(record["voice"]["ttfa_ms"]["max"] for record in records)
    print(f"| the slowest turn | {slowest:.0f} | {max(turn[4] for turns in rounds for turn in turns):.0f} | |")
    for (name, title), theirs in zip(STAGES.items(), stages):
        print(f"| – {title} | {ours[name]:.0f} | {theirs:.0f} | |")
    print(f"\nhob answered {answered} of {len(rounds) * len(QUESTIONS)} questions; the others were cut at a pause.")


if __name__ == "__main__":
    main()
