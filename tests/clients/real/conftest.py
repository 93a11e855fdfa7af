"""Where the servers are, and the clients' settings: as strict as the clients can be, and no retries.

Environment: HOB_URL (the real small model), HOB_KEYED_URL and HOB_KEY (a server that wants a key).
"""

import os

import httpx
import httpx2
import ollama
import openai
import pytest

MODEL = "smollm2"
# Of one request: it ends what would never end.
SECONDS_MAX = 180


@pytest.fixture(scope="session")
def url():
    return os.environ["HOB_URL"]


@pytest.fixture(scope="session")
def client(url):
    with official(url, "none is asked for") as client:
        yield client


@pytest.fixture(scope="session")
def lenient(url):
    """As programs use it: base64 vectors are decoded only without strict validation."""
    with official(url, "none is asked for", _strict_response_validation=False) as client:
        yield client


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
