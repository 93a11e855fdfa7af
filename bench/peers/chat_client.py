"""Servers and streamed answers, as a client meets them: when it asked, what it read, and when it read it.

Stamps are taken right after a read; events are parsed when the answer is over. Deliberately absent: any
package but the standard library.
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/clients"))
from free_port import free_port

MODEL = "smollm2"
READY_SECONDS_MAX = 180
ANSWER_SECONDS_MAX = 600


class EndedEarly(RuntimeError):
    """The model ended its answer before it had the wanted length."""


class Answer:
    """One streamed answer: when it was asked for, and what was read when."""

    def __init__(self, server, body):
        self.server, self.body, self.reads = server, body, []
        self.begun = threading.Event()
        self.failure = None

    def read(self):
        """Reads to the end. Nothing is parsed here: that would be measured too."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS_MAX)
        try:
            connection.connect()
            text = json.dumps(self.body)
            connection.request("POST", "/v1/chat/completions", text, {"content-type": "application/json"})
            self.sent = time.perf_counter()
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{self.server.name}: {response.status}: {response.read()[:300]!r}")
            while piece := response.read1(65536):
                self.reads.append((time.perf_counter(), piece))
                # The answer is certainly being generated now. Only `Bench.gap` waits for this.
                if len(self.reads) > 20:
                    self.begun.set()
        except Exception as failure:
            self.failure = failure
        finally:
            self.begun.set()
            connection.close()
        return self

    def parse(self):
        """Stamps of events with content, the text, and what the server counted."""
        if self.failure:
            raise self.failure
        self.stamps, self.text, self.finish, self.usage, self.timings = [], "", None, None, {}
        rest = b""
        for stamp, piece in self.reads:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                    self.take(stamp, json.loads(line[6:]))
        if not self.stamps or not self.usage:
            raise RuntimeError(f"{self.server.name}: an answer without content or without usage")
        self.prompt_tokens = self.usage["prompt_tokens"]
        self.tokens = self.usage["completion_tokens"]
        self.cached = (self.usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        self.ttft = self.stamps[0] - self.sent
        return self

    def take(self, stamp, event):
        if "error" in event:
            raise RuntimeError(f"{self.server.name}: {event['error']}")
        self.usage = event.get("usage") or self.usage
        self.timings = event.get("timings") or self.timings
        for choice in event["choices"]:
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice["delta"]
            if content := delta.get("content"):
                self.text += content
            if content or delta.get("tool_calls"):
                self.stamps.append(stamp)

    def whole_per_s(self):
        """Tokens per second from the request on. Guessed and forced tokens arrive together, so the first event may have many."""
        return self.tokens / (self.stamps[-1] - self.sent)

    def guesses(self):
        """Tokens of the answer, guessed tokens that were checked, and those of them that were right."""
        return self.tokens, self.timings.get("draft_n") or 0, self.timings.get("draft_n_accepted") or 0

    def decode_per_s(self):
        """Tokens per second after the first token."""
        return (self.tokens - 1) / (self.stamps[-1] - self.stamps[0])


class Server:
    def __init__(self, name, command, log, environment=None):
        self.name, self.port = name, free_port()
        command = [part.format(port=self.port) for part in command]
        self.command = command
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | (environment or {}))

    def wait_until(self, path):
        end = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}")
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} was not ready within {READY_SECONDS_MAX} s")

    def begin(self, messages, tokens_max):
        """An answer that is read on a thread of its own."""
        answer = Answer(self, request(messages, tokens_max))
        answer.thread = threading.Thread(target=answer.read, daemon=True)
        answer.thread.start()
        return answer

    def ask(self, messages, tokens_max, more=None):
        return Answer(self, request(messages, tokens_max) | (more or {})).read().parse()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def servers_of_a_run():
    """A list for the servers of a benchmark. They are stopped at its end, and after an error or a signal, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    servers = []
    try:
        yield servers
    except (RuntimeError, OSError, subprocess.SubprocessError) as failure:
        sys.exit(f"bench: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        for server in servers:
            server.stop()


def fetch(port, path, body=None):
    """The whole answer to a GET, or to a POST of a body as JSON."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body and json.dumps(body).encode(),
                                   {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=ANSWER_SECONDS_MAX) as answer:
        return answer.read()


def request(messages, tokens_max):
    return {
        "model": MODEL,
        "messages": messages,
        "max_tokens": tokens_max,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
