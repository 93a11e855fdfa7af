"""Runs the tests of openai's source package against hob, and compares the outcomes with the list of skips.

A test outside the list must pass. A test on the list must fail, so that the list stays current.
The tests are not changed.
"""

import collections
import pathlib
import subprocess
import sys
import tomllib
import xml.etree.ElementTree

FILES = (
    "chat/test_completions.py", "test_completions.py", "test_models.py", "test_embeddings.py",
    "audio/test_transcriptions.py", "audio/test_translations.py", "audio/test_speech.py",
)
HERE = pathlib.Path(__file__).parent


def run(sources, environment, seconds_max):
    """Returns a list of failure messages, and how many tests passed and were skipped."""
    report = pathlib.Path(environment["TMPDIR"]) / "official.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "--show-capture=no", "-p", "no:cacheprovider",
        "-p", "no:warnings", "-o", "addopts=", "-r", "N", f"--junitxml={report}",
        *(f"tests/api_resources/{file}" for file in FILES),
    ]
    report.unlink(missing_ok=True)
    try:
        subprocess.run(command, cwd=sources, env=environment, timeout=seconds_max, stdout=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return [f"the tests did not end within {seconds_max} s"], 0, 0
    if not report.exists():
        return ["pytest wrote no report"], 0, 0
    return judge(outcomes(report), tomllib.loads((HERE / "skips.toml").read_text())["skip"])


def outcomes(report):
    """{(file, test): [(suite, variant, None or why it failed)]}"""
    found = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        module, _, suite = case.get("classname").removeprefix("tests.api_resources.").rpartition(".")
        test, _, variant = case.get("name").removesuffix("]").partition("[")
        failure = next((part for kind in ("failure", "error", "skipped") for part in case.iter(kind)), None)
        why = None if failure is None else (failure.get("message") or failure.tag).splitlines()[0]
        found[module.replace(".", "/") + ".py", test].append((suite, variant, why))
    return found


def judge(found, skips):
    wrong, passed, skipped = [], 0, 0
    # The skipped variants of each test. None means all variants.
    listed = {(skip["file"], test): skip.get("variants") for skip in skips for test in skip["tests"]}
    wrong += [f"{file}: skips.toml names {test}, which does not exist" for file, test in sorted(listed.keys() - found.keys())]
    for (file, test), cases in found.items():
        for suite, variant, why in cases:
            variants = listed.get((file, test), [])
            name = f"{file}::{suite}::{test}[{variant}]"
            if variants is None or variant in variants:
                skipped += why is not None
                wrong += [f"{name} passes, but skips.toml lists it; remove it there"] if why is None else []
            else:
                passed += why is None
                wrong += [f"{name}: {why}"] if why is not None else []
    if not found:
        wrong.append("no test was run")
    return wrong, passed, skipped
