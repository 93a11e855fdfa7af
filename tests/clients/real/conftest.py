"""Fixtures for the clients: the strictest settings that each client has, and no retries.

Environment: HOB_URL (the real small model), HOB_KEYED_URL and HOB_KEY (a server that requires a key), TMPDIR (a folder of this run).
"""

import os
import pathlib

import httpx
import httpx2
import ollama
import openai
import pytest

MODEL = "smollm2"
# Time limit of one request. It ends a hanging test.
SECONDS_MAX = 180
# A spoken question. Its sound is 16-bit PCM.
QUESTION = "Could you tell me something about the weather in London?"
SAMPLES_PER_SECOND = 24_000


@pytest.fixture(scope="session")
def url():
    return os.environ["HOB_URL"]


@pytest.fixture(scope="session")
def client(url):
    with official(url, "not checked") as client:
        yield client


@pytest.fixture(scope="session")
def lenient(url):
    """A client as programs use it. It decodes base64 vectors only without strict validation."""
    with official(url, "not checked", _strict_response_validation=False) as client:
        yield client


@pytest.fixture(scope="session")
def question(lenient):
    """The question as samples, and the silence that ends it. Spoken once for all suites."""
    recording = pathlib.Path(os.environ["TMPDIR"]) / "question.pcm"
    if not recording.exists():
        spoken = lenient.audio.speech.create(model="kokoro", voice="af_heart", input=QUESTION, response_format="pcm")
        recording.write_bytes(spoken.read())
    return recording.read_bytes() + bytes(SAMPLES_PER_SECOND * 2)


@pytest.fixture(scope="session")
def keyed():
    with official(os.environ["HOB_KEYED_URL"], os.environ["HOB_KEY"]) as client:
        yield client


def official(url, key, **settings):
    strict = {"_strict_response_validation": True} | settings
    return openai.OpenAI(
        base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=httpx2.Timeout(SECONDS_MAX), **strict
    )


@pytest.fixture(scope="session")
def llama(url):
    return ollama.Client(host=url, timeout=httpx.Timeout(SECONDS_MAX))
