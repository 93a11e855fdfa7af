"""A pytest plugin for the tests of openai's source package: makes their requests about responses possible.

The tests were written for a mock server that answers any request. They name responses, conversations and items that were
never made, send no input, and set fields that exclude each other. Everything else of a request stays as the test wrote it.
"""

import functools
import os

import openai
import pytest
from openai._base_client import BaseClient

RESPONSES = {"resp_677efb5139a88190b512bc3fef8e535d", "response_id", "previous_response_id", "resp_123"}
CONVERSATION, ITEM = "conv_123", "msg_abc"
BUILD = BaseClient._build_request
# The ids of stored things that one test uses.
MADE = {}
# The paths that it asked for.
SENT = []


@pytest.fixture(autouse=True)
def own_things(request):
    MADE.clear()
    SENT.clear()
    yield
    # A test with a mock of the HTTP client says nothing about hob.
    requests = 0 if "respx2_mock" in request.fixturenames else len(SENT)
    request.node.user_properties.append(("requests", requests))


@pytest.fixture(autouse=True, scope="session")
def possible_requests():
    patch = pytest.MonkeyPatch()
    patch.setattr(BaseClient, "_build_request", build)
    yield
    patch.undo()


def build(client, options, **rest):
    SENT.append(options.url)
    if options.url.startswith(("/responses", "/conversations")):
        options = options.copy()
        options.url = "/".join(real(part) for part in options.url.split("/"))
        if isinstance(options.json_data, dict):
            options.json_data = possible(options.url, options.json_data)
        options.params = {name: page(name, value) for name, value in options.params.items()}
    return BUILD(client, options, **rest)


def real(name):
    """The id of a thing that is stored, in place of a made-up one."""
    if name in RESPONSES:
        return made("response")
    return made({CONVERSATION: "conversation", ITEM: "item"}.get(name)) or name


def made(kind):
    if kind and not MADE:
        item = {"type": "message", "role": "user", "content": "string"}
        conversation = client().conversations.create(items=[item])
        MADE["conversation"] = conversation.id
        MADE["item"] = client().conversations.items.list(conversation.id).data[0].id
        MADE["response"] = client().responses.create(model="gpt-4o", input="string").id
    return MADE.get(kind)


@functools.cache
def client():
    return openai.OpenAI(base_url=os.environ["TEST_API_BASE_URL"], api_key="My API Key", max_retries=0)


def possible(url, body):
    body = dict(body)
    if url in ("/responses", "/responses/input_tokens"):
        body = {"model": "gpt-4o", "input": "string"} | body
        if "previous_response_id" in body:
            body["previous_response_id"] = real(body["previous_response_id"])
            # OpenAI refuses both together, too.
            body.pop("conversation", None)
    return body


def page(name, value):
    # OpenAI documents a limit from 1 to 100.
    return {"after": made("item"), "limit": value or 1}.get(name, value)
