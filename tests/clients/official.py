"""Runs the tests of a client's source package against hob, and compares the outcomes with the list of skips.

A test outside the list must pass. A test on the list must fail, so that the list stays current.
The tests are not changed. One that sends no request says nothing about hob, and is not counted.
"""

import collections
import dataclasses
import importlib.metadata
import pathlib
import subprocess
import sys
import tomllib
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Package:
    """The tests of a source package that hob is to pass."""

    name: str
    # The folder of the files, and of those in the list of skips.
    folder: str
    files: tuple
    # A pytest plugin of this folder. It notes the number of requests of each test.
    plugin: str
    # The share of the scripted turns that must go through hob, if the plugin notes the turns of each test.
    share_min: float = 0.0


OPENAI = Package("openai", "tests/api_resources", (
    "chat/test_completions.py", "test_completions.py", "test_models.py", "test_embeddings.py",
    "audio/test_transcriptions.py", "audio/test_translations.py", "audio/test_speech.py",
    "test_responses.py", "responses/test_input_items.py", "responses/test_input_tokens.py",
    "test_conversations.py", "conversations/test_items.py",
), "official_ids")

# The runs of agents: turns, tools, handoffs, guardrails, hooks, streams, sessions, approval, MCP.
AGENTS = Package("openai-agents", "tests", (
    "test_agent_runner.py", "test_agent_runner_streamed.py", "test_max_turns.py", "test_stream_events.py",
    "test_tool_use_behavior.py", "test_tool_choice_reset.py", "test_resume_tool_use_behavior.py", "test_agent_as_tool_output_guardrails.py",
    "test_handoff_history_duplication.py", "test_call_model_input_filter.py", "test_guardrails.py", "test_soft_cancel.py",
    "test_run_hooks.py", "test_agent_hooks.py", "test_global_hooks.py", "test_hitl_session_scenario.py",
    "memory/test_session.py", "memory/test_session_limit.py", "memory/test_openai_conversations_session.py",
    "mcp/test_runner_calls_mcp.py", "mcp/test_mcp_approval.py",
), "agents_on_hob", 0.89)


def run(package, sources, environment, seconds_max):
    """Returns a list of failure messages, and how many tests passed and were skipped."""
    report = pathlib.Path(environment["TMPDIR"]) / f"{package.name}.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "--show-capture=no", "-p", "no:cacheprovider",
        "-p", "no:warnings", "-p", package.plugin, "--assert=plain", "-o", "addopts=", "-r", "N", f"--junitxml={report}",
        *(f"{package.folder}/{file}" for file in package.files),
    ]
    environment = environment | {"PYTHONPATH": str(HERE)}
    folder = pathlib.Path(sources) / f"{package.name}-{importlib.metadata.version(package.name)}"
    report.unlink(missing_ok=True)
    try:
        subprocess.run(command, cwd=folder, env=environment, timeout=seconds_max, stdout=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return [f"the tests did not end within {seconds_max} s"], 0, 0
    if not report.exists():
        return ["pytest wrote no report"], 0, 0
    wrong, passed, skipped = judge(outcomes(package, report), tomllib.loads((HERE / "skips.toml").read_text())[package.name])
    return wrong + too_few_turns(package, report), passed, skipped


def too_few_turns(package, report):
    """Prints how many scripted turns went through hob. A list with a failure message, if these are too few."""
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    turns, requests = (sum(noted(case, name) for case in cases) for name in ("turns", "requests"))
    tests = sum(noted(case, "requests") > 0 for case in cases)
    if not turns:
        return ["no test had a scripted turn"] if package.share_min else []
    said = f"{requests} of {turns} scripted turns ({requests / turns:.1%}) went through hob, in {tests} of {len(cases)} tests"
    print(f"{said}.")
    return [f"{said}; at least {package.share_min:.0%} must"] if requests / turns < package.share_min else []


def noted(case, name):
    """The sum of what a plugin noted about a test."""
    return sum(int(part.get("value")) for part in case.iter("property") if part.get("name") == name)


def outcomes(package, report):
    """{(file, test): [(suite, variant, None or why it failed, whether it sent a request)]}"""
    found = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        *module, last = case.get("classname").removeprefix(package.folder.replace("/", ".") + ".").split(".")
        # Tests are in a class or in none.
        module, suite = (module, last) if last.startswith("Test") else ([*module, last], "")
        test, _, variant = case.get("name").removesuffix("]").partition("[")
        failure = next((part for kind in ("failure", "error", "skipped") for part in case.iter(kind)), None)
        why = None if failure is None else (failure.get("message") or failure.tag).splitlines()[0]
        found["/".join(module) + ".py", test].append((suite, variant, why, noted(case, "requests") > 0))
    return found


def judge(found, skips):
    wrong, passed, skipped = [], 0, 0
    # The skipped variants of each test. None means all variants.
    listed = {(skip["file"], test): skip.get("variants") for skip in skips for test in skip["tests"]}
    wrong += [f"{file}: skips.toml names {test}, which does not exist" for file, test in sorted(listed.keys() - found.keys())]
    for (file, test), cases in found.items():
        for suite, variant, why, has_asked in cases:
            variants = listed.get((file, test), [])
            name = "::".join(part for part in (file, suite, f"{test}[{variant}]" if variant else test) if part)
            if variants is None or variant in variants:
                skipped += why is not None
                wrong += [f"{name} passes, but skips.toml lists it; remove it there"] if why is None else []
            else:
                passed += why is None and has_asked
                wrong += [f"{name}: {why}"] if why is not None else []
    if not passed:
        wrong.append("no test was run")
    return wrong, passed, skipped
