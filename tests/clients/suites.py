"""Starts hob servers, runs each suite against the server that it needs, and adds up the results.

One server gives fixed answers and requires a key. The tests of openai's source package use it. Another server
runs the real small model, a third one speaks and hears over Wyoming, and a fourth one follows a script. All traffic stays on loopback.
"""

import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree

import official
from free_port import free_port

HERE = pathlib.Path(__file__).parent
# The key that openai's own tests send.
KEY = "My API Key"
CONFORMANCE = '[chat]\nload = "first_request"\n[dev]\nmock_unknown_models = true\n'
# One thread: other tests compute at the same time, and two threads that wait for each other on shared cores take longer than one.
REAL = '[chat]\nmodel = "smollm2"\nthreads = 1\nkeep_alive = "forever"\n[transcription]\nload = "start"\n'
# Home Assistant is another machine, so hob must not need more than its defaults for it.
WYOMING = """[chat]
load = "first_request"
[transcription]
load = "start"
[wyoming]
enabled = true
speech_port = {speech}
transcription_port = {transcription}
[alias.narrator]
to = ["kokoro"]
"""
# Answers as a script says. The alias `sdk` answers as each test of openai-agents says.
SCRIPTED = f'''[chat]
load = "first_request"
[transcription]
load = "start"
[dev.scripts]
scripted = "{HERE}/agents.jsonl"
[upstream.test]
url = "http://127.0.0.1:{{answers}}"
[alias.sdk]
to = ["test/scripted"]
'''
# Time limits that end a hanging test. They are long because the machine may be busy.
SECONDS_MAX = {"official": 300, "python": 1800, "ollama": 300, "javascript": 300, "wyoming": 600, "agents": 900, "sdk": 600, "mcp": 300}
START_SECONDS_MAX = 300
# The models that each server has in memory before its suites begin. A request waits for its model for 30 s at most, and a busy
# machine may need longer.
LOADED = {"real": ["kokoro", "smollm2", "whisper-base"], "wyoming": ["kokoro", "whisper-base"], "scripted": ["kokoro", "whisper-base"]}
# Suites on servers that run no real model. They run next to the others.
WITHOUT_MODEL = ("official", "sdk", "mcp")


class Hob:
    """A server on a free port. Its output goes to a file, which is shown after a failure."""

    def __init__(self, name, config, folder, key=None):
        self.models = set(LOADED.get(name, []))
        self.log = pathlib.Path(folder) / f"{name}.log"
        written = pathlib.Path(folder) / f"{name}.toml"
        written.write_text(config)
        environment = {k: v for k, v in os.environ.items() if k != "HOB_API_KEY"} | ({"HOB_API_KEY": key} if key else {})
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [os.environ["HOB"], "serve", "--config", written, "--listen", self.url.removeprefix("http://")]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def wait(self):
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.is_ready():
                    return
            except urllib.error.HTTPError as error:
                # A server that starts answers 503. No other error ends by waiting, such as a wrong path or a missing key.
                if error.code < 500:
                    raise RuntimeError(f"hob answers {error.code} to {error.url}:\n{self.log.read_text()}") from error
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"hob did not become ready:\n{self.log.read_text()}")

    def is_ready(self):
        """Whether it answers, and has its models in memory. Raises an OSError while it does not answer, or not yet."""
        with urllib.request.urlopen(f"{self.url}/ready", timeout=30):
            pass
        # The list takes a key where there is one. No such server has a list of models here.
        if not self.models:
            return True
        with urllib.request.urlopen(f"{self.url}/api/hob/ps", timeout=30) as answer:
            models = json.load(answer)["models"]
        return self.models <= {model["name"] for model in models if model["state"] == "warm"}

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run_official(suite, package, sources, environment):
    wrong, passed, skipped = official.run(package, sources, environment, SECONDS_MAX[suite])
    print("\n".join(wrong) or f"{passed} of the own tests of {package.name} pass; {skipped} fail as skips.toml expects.")
    return passed, len(wrong), skipped


def run_pytest(suite, file, environment):
    report = pathlib.Path(environment["TMPDIR"]) / f"{suite}.xml"
    return reported(suite, report, environment, [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:asyncio", "-rN",
        "-s", "--durations=3", f"--junitxml={report}", *file,
    ])


def run_node(suite, file, environment):
    report = pathlib.Path(environment["TMPDIR"]) / f"{suite}.xml"
    return reported(suite, report, environment, [
        "node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
        "--test-reporter=junit", f"--test-reporter-destination={report}", *file,
    ])


def reported(suite, report, environment, command):
    """Runs a suite and counts passed, failed and skipped tests in its report. An incomplete suite counts as failed."""
    try:
        code = subprocess.run(command, cwd=HERE, env=environment, timeout=SECONDS_MAX[suite], check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"{suite}: did not end within {SECONDS_MAX[suite]} s")
        code = None
    if code is None or not report.exists():
        return 0, 1, 0
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    # An error outside of all tests shows only in the exit code.
    return len(cases) - failed - skipped, max(failed, int(code != 0)), skipped


def run_in_order(names, suites):
    """Runs suites one after the other. Returns how many tests passed, failed and were skipped."""
    totals = [0, 0, 0]
    for name in names:
        started = time.monotonic()
        print(f"\n==> {name}", flush=True)
        totals = [a + b for a, b in zip(totals, suites[name]())]
        print(f"    {time.monotonic() - started:.0f} s", flush=True)
    return totals


class Background:
    """Runs suites in a process of its own. Their output goes to a file, so that it stays in one piece."""

    def __init__(self, names, suites, folder):
        self.output = pathlib.Path(folder) / "background.txt"
        process = multiprocessing.get_context("fork")
        self.totals = process.Array("i", 3)
        self.process = process.Process(target=self.run, args=(names, suites))
        self.process.start()

    def run(self, names, suites):
        with self.output.open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        self.totals[:] = run_in_order(names, suites)

    def wait(self):
        """Prints the output, and returns the totals. An incomplete suite counts as failed."""
        self.process.join()
        print(self.output.read_text(), end="", flush=True)
        passed, failed, skipped = self.totals[:]
        return passed, max(failed, int(self.process.exitcode != 0)), skipped

    def stop(self):
        self.process.terminate()
        self.process.join()


def main(sources, wanted):
    # SIGTERM becomes an exception, so that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    servers, background = [], None
    with tempfile.TemporaryDirectory() as folder:
        try:
            # Starts one after the other. If both create the request log of a new home at once, one may find it locked.
            ports = {"speech": free_port(), "transcription": free_port(), "answers": free_port()}
            wyoming, scripted = WYOMING.format(**ports), SCRIPTED.format(**ports)
            for name, config, key in [("conformance", CONFORMANCE, KEY), ("real", REAL, None), ("wyoming", wyoming, None), ("scripted", scripted, None)]:
                servers.append(Hob(name, config, folder, key))
                servers[-1].wait()
            environment = os.environ | {
                "TMPDIR": folder, "TEST_API_BASE_URL": f"{servers[0].url}/v1", "HOB_KEYED_URL": servers[0].url,
                "HOB_KEY": KEY, "HOB_URL": servers[1].url, "HOB_WYOMING_URL": servers[2].url,
                "HOB_WYOMING_SPEECH": str(ports["speech"]), "HOB_WYOMING_TRANSCRIPTION": str(ports["transcription"]), "HOB_SCRIPTED_URL": servers[3].url,
                "HOB_AGENTS_MODEL": "sdk", "HOB_AGENTS_PORT": str(ports["answers"]),
            }
            suites = {
                "official": lambda: run_official("official", official.OPENAI, sources, environment),
                "python": lambda: run_pytest("python", ["real/test_openai.py", "real/test_realtime.py", "real/test_openapi.py", "real/test_valid.py"], environment),
                "ollama": lambda: run_pytest("ollama", ["real/test_ollama.py"], environment),
                "javascript": lambda: run_node("javascript", ["openai.test.mjs"], environment),
                "agents": lambda: run_pytest("agents", ["real/test_agents.py", "real/test_realtime_agents.py"], environment),
                "sdk": lambda: run_official("sdk", official.AGENTS, sources, environment),
                "mcp": lambda: run_node("mcp", ["mcp.test.mjs"], environment),
                "wyoming": lambda: run_pytest("wyoming", ["real/test_wyoming.py"], environment),
            }
            names = wanted or list(suites)
            background = Background([name for name in names if name in WITHOUT_MODEL], suites, folder)
            totals = run_in_order([name for name in names if name not in WITHOUT_MODEL], suites)
            totals = [a + b for a, b in zip(totals, background.wait())]
            if totals[1]:
                show(servers)
        finally:
            if background:
                background.stop()
            for server in servers:
                server.stop()
    print(f"\n{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    sys.exit(totals[1] > 0 or totals[0] == 0)


def show(servers):
    """Prints the last lines of the servers' output."""
    for server in servers:
        print(f"\n--- {server.log.stem}", *server.log.read_text().splitlines()[-20:], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
