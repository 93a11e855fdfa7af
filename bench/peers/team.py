"""The cost of a turn of a team: hob's own share, and that of openai-agents with the same scripted model.

Environment: HOB (the binary). The scripted model answers at once, so what is measured is everything else: prompts, calls,
checks, tools and the storing of the run. hob runs its team in the server; openai-agents asks the same server over HTTP, and
only its own processor time is counted. The two take turns. Then a hundred runs wait for slow models at once. Prints Markdown.
hob's processor time is the CPU clock of its process, in nanoseconds, and its events are those in the file of the run.
"""

import argparse
import asyncio
import concurrent.futures
import json
import os
import pathlib
import resource
import statistics
import tempfile
import time

import agents
import openai

from chat_client import Server, fetch, servers_of_a_run
from chat_report import memory_mb

# The peer's client belongs to one event loop.
LOOP = asyncio.Runner()
TURNS = 39
AT_ONCE = 100
TEAM = """entry = "reader"
[budget]
turns = 60
[[agent]]
name = "reader"
model = "MODEL"
instructions = "Read the notes."
tools = ["read_file"]
turns = 60
"""


def script(runs):
    """For each run: calls with arguments that differ, and then an answer."""
    for _ in range(runs):
        for number in range(TURNS - 1):
            call = {"name": "read_file", "arguments": {"path": f"note-{number}.txt"}}
            yield {"reply": {"tool_calls": [call]}}
        yield {"reply": {"content": "All read."}}


def write(folder, runs):
    (folder / "teams").mkdir()
    for name, model in (("readers", "quick"), ("waiters", "slow")):
        (folder / "teams" / f"{name}.toml").write_text(TEAM.replace("MODEL", model))
    # Both read the same model, one after the other.
    (folder / "quick.jsonl").write_text("\n".join(json.dumps(step) for step in script(2 * runs)))
    (folder / "slow.jsonl").write_text(json.dumps({"reply": {"delay_ms": 8_000, "content": "Done."}, "repeat": True}))
    (folder / "hob.toml").write_text('[dev.scripts]\nquick = "quick.jsonl"\nslow = "slow.jsonl"\n')


def ask(port, model):
    body = {"model": model, "messages": [{"role": "user", "content": "Read the notes."}]}
    return json.loads(fetch(port, "/v1/chat/completions", body))["choices"][0]["message"]["content"]


def hobs_run(server, stored):
    """Milliseconds of a turn, and of processor time; the events of the run, and microseconds of processor time for each."""
    known = set(stored.glob("*/events.jsonl"))
    before, begun = cpu_ns(server.process.pid), time.perf_counter()
    assert ask(server.port, "readers") == "All read."
    ended, cpu = time.perf_counter(), cpu_ns(server.process.pid) - before
    [made] = set(stored.glob("*/events.jsonl")) - known
    events = len(made.read_text().splitlines())
    return 1000 * (ended - begun) / TURNS, cpu / 1e6 / TURNS, events, cpu / 1e3 / events


def cpu_ns(pid):
    """The processor time of all threads of a process: Linux's clock of a process, `clock_getcpuclockid(3)`."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def peers_run(agent):
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    config = agents.RunConfig(tracing_disabled=True)
    result = LOOP.run(agents.Runner.run(agent, "Read the notes.", max_turns=60, run_config=config))
    assert result.final_output == "All read."
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * (time.perf_counter() - begun) / TURNS, 1000 * cpu / TURNS


@agents.function_tool
def read_file(path: str) -> str:
    """Reads a text file of the workspace."""
    return f"there is no file {path}"


def hundred(server):
    """Megabytes of the server before, and while a hundred runs wait."""
    before = memory_mb(server.process.pid, "VmRSS")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [pool.submit(ask, server.port, "waiters") for _ in range(AT_ONCE)]
        time.sleep(4)
        during = memory_mb(server.process.pid, "VmRSS")
        done = sum(answer.result() == "Done." for answer in answers)
    return before, during, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=8, help="runs of each; the first of each is not counted")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, open(f"{name}/log", "w") as log:
        folder = pathlib.Path(name)
        write(folder, args.n)
        # A home of its own, without models.
        os.environ["HOB_HOME"] = f"{name}/home"
        with servers_of_a_run() as servers:
            server = Server("hob", [os.environ["HOB"], "serve", "--config", f"{name}/hob.toml", "--listen", "127.0.0.1:{port}"], log)
            servers.append(server)
            server.wait_until("/health")
            client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
            model = agents.OpenAIChatCompletionsModel("quick", client)
            agent = agents.Agent(name="reader", instructions="Read the notes.", model=model, tools=[read_file])
            runs = [(hobs_run(server, folder / "home" / "runs"), peers_run(agent)) for _ in range(args.n)][1:]
            report(runs)
            before, during, done = hundred(server)
            print(f"\n{done} of {AT_ONCE} runs at once: {during - before:.0f} MB more than before ({before:.0f} MB).")


def report(runs):
    print(f"| a turn, median of {len(runs)} runs of {TURNS} turns | hob | openai-agents | ratio |\n|---|---|---|---|")
    for at, name in enumerate(("wall time, ms", "processor time, ms")):
        ours, theirs = (statistics.median(run[side][at] for run in runs) for side in (0, 1))
        print(f"| {name} | {ours:.3f} | {theirs:.2f} | {ours / theirs:.3f} |")
    events, cpu_us = (statistics.median(hob[at] for hob, _ in runs) for at in (2, 3))
    print(f"| hob's processor time for one of {events:.0f} events, µs | {cpu_us:.0f} | | |")


if __name__ == "__main__":
    main()
