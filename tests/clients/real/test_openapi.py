"""Checks `/openapi.json` with an independent validator, and real answers of hob against the schemas in it."""

import json
import re

import httpx
import jsonschema
import openapi_spec_validator
import pytest

from conftest import MODEL, SECONDS_MAX

GREETING = [{"role": "user", "content": "Say hello to the harbour master."}]
FEW = {"max_tokens": 8}
TOOL = {"type": "function", "function": {"name": "dock", "parameters": {"type": "object", "properties": {"pier": {"type": "integer"}}}}}


@pytest.fixture(scope="session")
def http(url):
    with httpx.Client(base_url=url, timeout=SECONDS_MAX) as client:
        yield client


@pytest.fixture(scope="session")
def document(http):
    return http.get("/openapi.json").raise_for_status().json()


def test_the_document_is_valid(document):
    openapi_spec_validator.validate(document)
    assert document["openapi"].startswith("3.1")


# By the identity of their schema, which is a part of the document. A stream has many values of one schema.
VALIDATORS = {}


def check(document, schema, value):
    """References inside the schema lead to the document's components."""
    if id(schema) not in VALIDATORS:
        whole = closed(schema | {"components": document["components"]})
        VALIDATORS[id(schema)] = jsonschema.Draft202012Validator(whole)
    error = jsonschema.exceptions.best_match(VALIDATORS[id(schema)].iter_errors(value))
    assert error is None, f"{error.json_path}: {error.message}"


def closed(schema, is_part=False):
    """Forbids fields that a type does not list. The parts of a type that has several list some of its fields each."""
    if isinstance(schema, list):
        return [closed(one, is_part) for one in schema]
    if not isinstance(schema, dict):
        return schema
    fields = isinstance(schema.get("properties"), dict)
    parts = {"oneOf", "anyOf", "allOf"}
    inside = {name: closed(value, fields and name in parts) for name, value in schema.items()}
    is_open = is_part or "additionalProperties" in schema or parts & schema.keys()
    return inside | {"additionalProperties": False} if fields and "type" in schema and not is_open else inside


def content(document, method, path, status, media):
    responses = document["paths"][path][method]["responses"]
    return responses[str(status)]["content"][media]["schema"]


# Method, path of the document, path of the request, body, status.
WHOLE = [
    ("get", "/v1/models", None, None, 200),
    ("get", "/v1/models/{id}", f"/v1/models/{MODEL}", None, 200),
    ("get", "/v1/audio/models", None, None, 200),
    ("get", "/v1/audio/voices", None, None, 200),
    ("get", "/v1/ready", None, None, 200),
    ("get", "/api/tags", None, None, 200),
    ("get", "/api/ps", None, None, 200),
    ("get", "/api/version", None, None, 200),
    ("post", "/api/show", None, {"model": MODEL}, 200),
    ("get", "/api/hob/ps", None, None, 200),
    ("get", "/api/hob/upstreams", None, None, 200),
    ("get", "/api/fit/machines", None, None, 200),
    ("get", "/api/fit/models", None, None, 200),
    ("post", "/api/fit", None, {"model": MODEL}, 200),
    ("post", "/v1/chat/completions", None, {"model": MODEL, "messages": GREETING} | FEW, 200),
    (
        "post", "/v1/chat/completions", None,
        {"model": MODEL, "messages": GREETING, "logprobs": True, "top_logprobs": 2, "n": 2} | FEW, 200,
    ),
    (
        "post", "/v1/chat/completions", None,
        {"model": MODEL, "messages": GREETING, "tools": [TOOL], "tool_choice": "required", "max_tokens": 64}, 200,
    ),
    ("post", "/v1/completions", None, {"model": MODEL, "prompt": "The harbour", "logprobs": 1} | FEW, 200),
    ("post", "/v1/embeddings", None, {"model": MODEL, "input": "boat"}, 200),
    ("post", "/v1/embeddings", None, {"model": MODEL, "input": "boat", "encoding_format": "base64"}, 200),
    ("post", "/api/chat", None, {"model": MODEL, "messages": GREETING, "stream": False, "options": {"num_predict": 8}}, 200),
    ("post", "/api/generate", None, {"model": MODEL, "prompt": "Hi", "stream": False, "options": {"num_predict": 8}}, 200),
    ("post", "/api/embed", None, {"model": MODEL, "input": "boat"}, 200),
    ("post", "/api/embeddings", None, {"model": MODEL, "prompt": "boat"}, 200),
    ("get", "/api/hob/now", None, None, 200),
    ("post", "/v1/chat/completions", None, {"model": MODEL}, 400),
    ("post", "/v1/chat/completions", None, {"model": "no-such-model", "messages": GREETING}, 404),
    ("post", "/api/chat", None, {"model": "no-such-model", "messages": GREETING}, 404),
]


@pytest.mark.parametrize("method,path,asked,body,status", WHOLE)
def test_an_answer_follows_its_schema(http, document, method, path, asked, body, status):
    answer = http.request(method, asked or path, json=body)
    assert answer.status_code == status, answer.text
    check(document, content(document, method, path, status, "application/json"), answer.json())


STREAMS = [
    (
        "/v1/chat/completions", "text/event-stream",
        {"messages": GREETING, "stream": True, "stream_options": {"include_usage": True}, "logprobs": True} | FEW,
    ),
    (
        "/v1/chat/completions", "text/event-stream",
        {"messages": GREETING, "stream": True, "tools": [TOOL], "tool_choice": "required", "max_tokens": 64},
    ),
    ("/v1/completions", "text/event-stream", {"prompt": "The harbour", "stream": True} | FEW),
    ("/api/chat", "application/x-ndjson", {"messages": GREETING, "options": {"num_predict": 8}}),
    ("/api/generate", "application/x-ndjson", {"prompt": "Hi", "options": {"num_predict": 8}}),
    ("/api/hob/load", "application/x-ndjson", {"stream": True, "keep_alive": -1}),
]


@pytest.mark.parametrize("path,media,body", STREAMS)
def test_a_stream_follows_its_schema(http, document, path, media, body):
    answer = http.post(path, json={"model": MODEL} | body).raise_for_status()
    assert answer.headers["content-type"].startswith(media)
    lines = [re.sub("^data: ", "", line) for line in answer.text.splitlines()]
    values = [json.loads(line) for line in lines if line.startswith("{")]
    assert values
    for value in values:
        check(document, content(document, "post", path, 200, media)["contentSchema"], value)


def test_a_request_is_shown_as_its_schema_says(http, document):
    answer = http.post("/v1/chat/completions", json={"model": MODEL, "messages": GREETING} | FEW)
    number = answer.headers["x-hob-request-id"]
    shown = http.get(f"/api/hob/requests/{number}").raise_for_status().json()
    assert shown["stage"] == "ended"
    check(document, content(document, "get", "/api/hob/requests/{id}", 200, "application/json"), shown)


def test_real_requests_follow_their_schemas(document):
    for _, path, _, body, status in WHOLE:
        if body is not None and status == 200:
            schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            check(document, schema, body)
