"""How much chat, speech and transcription slow each other down on one machine: `make bench-together`.

Environment: HOB (the binary), HOB_HOME (a home with the default models). Each kind of request is repeated alone for
some seconds, then all kinds at once. Prints a table in Markdown. Needs only Python.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from chat_client import Server, servers_of_a_run

SECONDS = 30
SENTENCE = "The harbour master counted eleven boats before the fog came in, and the twelfth one was never seen again."


def post(url, path, body, kind="application/json"):
    request = urllib.request.Request(url + path, body, {"content-type": kind})
    return urllib.request.urlopen(request, timeout=300)


def chat(url, _):
    """Tokens per second, from the first to the last."""
    body = {"messages": [{"role": "user", "content": "Tell a long story about a lighthouse."}], "max_tokens": 96,
            "ignore_eos": True, "stream": True}
    with post(url, "/v1/chat/completions", json.dumps(body).encode()) as answer:
        times = [time.perf_counter() for line in answer if b'"content":' in line]
    return (len(times) - 1) / (times[-1] - times[0])


def speech(url, _):
    """Seconds of sound per second."""
    body = {"model": "kokoro", "input": SENTENCE * 2, "voice": "af_heart", "response_format": "pcm"}
    started = time.perf_counter()
    with post(url, "/v1/audio/speech", json.dumps(body).encode()) as answer:
        seconds = len(answer.read()) / 2 / 24_000
    return seconds / (time.perf_counter() - started)


def transcription(url, sound):
    """Utterances per second."""
    mark = "----------------------------e1f0"
    head = f'--{mark}\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--{mark}\r\n' \
           f'content-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    body = head.encode() + sound + f"\r\n--{mark}--\r\n".encode()
    started = time.perf_counter()
    with post(url, "/v1/audio/transcriptions", body, f"multipart/form-data; boundary={mark}") as answer:
        answer.read()
    return 1 / (time.perf_counter() - started)


KINDS = {"chat, tokens/s of one answer": chat, "speech, seconds of sound per second": speech,
         "transcription of one sentence, per second": transcription}


def measure(url, sound, kinds):
    """The median of each kind's figures, all kinds at once."""
    figures = {kind: [] for kind in kinds}
    until = time.perf_counter() + SECONDS

    def repeat(kind):
        while time.perf_counter() < until:
            figures[kind].append(KINDS[kind](url, sound))

    threads = [threading.Thread(target=repeat, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {kind: statistics.median(values) for kind, values in figures.items()}


def main():
    subprocess.run([os.environ["HOB"], "pull"], stdout=sys.stderr, check=True)
    with tempfile.TemporaryFile() as log, servers_of_a_run() as servers:
        servers.append(Server("hob", [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"], log))
        servers[0].wait_until("/ready")
        url = f"http://127.0.0.1:{servers[0].port}"
        body = {"model": "kokoro", "input": SENTENCE, "voice": "am_michael", "response_format": "wav"}
        with post(url, "/v1/audio/speech", json.dumps(body).encode()) as answer:
            sound = answer.read()
        measure(url, sound, KINDS)  # warm-up
        alone = {}
        for kind in KINDS:
            alone.update(measure(url, sound, [kind]))
        print("| | alone | all three at once | slower by |\n|---|---|---|---|")
        for kind, value in measure(url, sound, KINDS).items():
            print(f"| {kind} | {alone[kind]:.2f} | {value:.2f} | {alone[kind] / value:.2f} × |")


main()
