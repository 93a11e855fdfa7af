"""Tests the `ollama` package with hob's Ollama routes and the real small model."""

import asyncio
import datetime
import json

import httpx
import jsonschema
import ollama
import pytest

from conftest import MODEL, SECONDS_MAX
from schemas import PERSON, TOOLS, parameters_of

GREETING = [{"role": "user", "content": "Say hello to the harbour master."}]
FEW = {"num_predict": 24}


def counted(answer):
    """Checks the fields of a finished answer."""
    assert answer.done and answer.done_reason in ("stop", "length")
    assert answer.prompt_eval_count > 0 and 0 < answer.eval_count <= 24
    assert answer.eval_duration > 0 and answer.prompt_eval_duration >= 0
    assert answer.total_duration >= answer.eval_duration


def test_chat(llama):
    answer = llama.chat(MODEL, GREETING, options=FEW)
    assert answer.message.role == "assistant" and answer.message.content.strip()
    datetime.datetime.fromisoformat(answer.created_at)
    counted(answer)


def test_a_streamed_chat_ends_with_its_figures(llama):
    *parts, last = list(llama.chat(MODEL, GREETING, stream=True, options=FEW))
    assert len(parts) > 1 and not any(part.done for part in parts)
    assert "".join(part.message.content or "" for part in parts).strip()
    counted(last)


def test_an_async_stream(url):
    async def read():
        client = ollama.AsyncClient(host=url, timeout=httpx.Timeout(SECONDS_MAX))
        return [part async for part in await client.chat(MODEL, GREETING, stream=True, options=FEW)]

    counted(asyncio.run(read())[-1])


def test_generate(llama):
    answer = llama.generate(MODEL, "Say hello.", options=FEW)
    assert answer.response.strip()
    counted(answer)
    *parts, last = list(llama.generate(MODEL, "Say hello.", stream=True, options=FEW))
    assert "".join(part.response or "" for part in parts).strip()
    counted(last)
    assert llama.generate(MODEL, "One, two, three,", raw=True, options={"num_predict": 4}).response


def test_an_answer_matches_its_format(llama):
    answer = llama.chat(MODEL, GREETING, format=PERSON, options={"num_predict": 80, "temperature": 1, "seed": 3})
    jsonschema.validate(json.loads(answer.message.content), PERSON)
    answer = llama.generate(MODEL, "Describe a ship as JSON.", format="json", options={"num_predict": 80})
    assert isinstance(json.loads(answer.response), dict)


def test_tools_are_offered_and_their_calls_are_valid(llama):
    # The Ollama API cannot force a tool call, and a small model may not make one. If it makes a call, the call must be valid.
    wish = [{"role": "user", "content": "How will the weather be in Porto this week?"}]
    answer = llama.chat(MODEL, wish, tools=TOOLS, options={"num_predict": 96})
    assert answer.message.tool_calls or answer.message.content
    for call in answer.message.tool_calls or []:
        jsonschema.validate(dict(call.function.arguments), parameters_of(call.function.name))


def test_a_tool_result_is_accepted(llama):
    call = {"function": {"name": "weather_of", "arguments": {"city": "Porto", "unit": "celsius"}}}
    talk = [
        {"role": "user", "content": "How will the weather be in Porto?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather_of", "content": "rain"},
    ]
    assert llama.chat(MODEL, talk, tools=TOOLS, options=FEW).done


def test_embeddings(llama):
    one = llama.embed(MODEL, "A boat in the harbour.")
    two = llama.embed(MODEL, ["A boat in the harbour.", "The tax return is late."])
    assert len(one.embeddings) == 1 and len(two.embeddings) == 2
    assert list(one.embeddings[0]) == pytest.approx(list(two.embeddings[0]), rel=1e-3, abs=1e-4)
    assert sum(x * x for x in one.embeddings[0]) == pytest.approx(1, abs=1e-3)
    assert len(llama.embeddings(MODEL, "A boat in the harbour.").embedding) == len(one.embeddings[0])


def test_installed_models_are_listed_and_described(llama):
    names = [model.model for model in llama.list().models]
    assert f"{MODEL}:latest" in names
    listed = next(model for model in llama.list().models if model.model == f"{MODEL}:latest")
    assert listed.size > 50_000_000 and listed.digest and listed.modified_at
    for name in (MODEL, f"{MODEL}:latest"):
        shown = llama.show(name)
        assert shown.details.format == "gguf" and shown.details.quantization_level == "Q8_0"
        assert "completion" in shown.capabilities
        assert shown.modelinfo["general.architecture"] == "llama"
        assert shown.modelinfo["llama.context_length"] == 8192
        assert shown.template


def test_a_model_name_may_include_its_size(llama):
    assert llama.show("smollm2:135m").details.parameter_size == "134.52M"
    counted(llama.chat("smollm2:135m", GREETING, options=FEW))
    with pytest.raises(ollama.ResponseError) as caught:
        llama.show("smollm2:360m")
    assert caught.value.status_code == 404


def test_the_version_is_one_that_clients_accept(url):
    version = httpx.get(f"{url}/api/version").json()["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


def test_a_context_continues_the_conversation(llama):
    first = llama.generate(MODEL, "My name is Anna. Say hello.", options=FEW)
    second = llama.generate(MODEL, "Say it again.", context=first.context, options=FEW)
    assert second.prompt_eval_count > first.prompt_eval_count + first.eval_count
    assert len(second.context) > len(first.context)


def test_log_probabilities_come_with_their_tokens(llama):
    answer = llama.chat(MODEL, GREETING, logprobs=True, top_logprobs=2, options=FEW | {"temperature": 0})
    assert "".join(token.token for token in answer.logprobs).startswith(answer.message.content[:4])
    for token in answer.logprobs:
        assert token.logprob <= 0 and len(token.top_logprobs) == 2
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob


def test_a_partial_assistant_message_is_continued(llama):
    begun = "One, two, three, four, five,"
    talk = [{"role": "user", "content": "Count to ten in words."}, {"role": "assistant", "content": begun}]
    answer = llama.chat(MODEL, talk, options={"num_predict": 4, "temperature": 0})
    assert answer.message.content.strip().startswith("six"), answer.message.content


def test_a_model_is_loaded_and_unloaded_on_request(llama):
    def loaded():
        return [model.model for model in llama.ps().models]

    assert llama.generate(MODEL, keep_alive="5m").done_reason == "load"
    assert f"{MODEL}:latest" in loaded()
    running = llama.ps().models[0]
    assert running.size > 0 and running.context_length > 0 and running.expires_at is not None
    assert llama.generate(MODEL, keep_alive=0).done_reason == "unload"
    assert f"{MODEL}:latest" not in loaded()
    counted(llama.chat(MODEL, GREETING, options=FEW))
    assert f"{MODEL}:latest" in loaded()


def test_pulling_an_installed_model_succeeds(llama):
    assert llama.pull(MODEL).status == "success"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_unknown_model_is_an_error(llama, stream):
    with pytest.raises(ollama.ResponseError) as caught:
        answer = llama.chat("unknown-model", GREETING, stream=stream)
        list(answer)
    assert caught.value.status_code == 404
    assert "unknown-model" in caught.value.error


def test_wrong_types_are_refused(llama):
    with pytest.raises(ollama.ResponseError) as caught:
        llama.chat(MODEL, GREETING, options={"temperature": "hot"})
    assert caught.value.status_code == 400


def test_options_of_ollama_alone_are_accepted(llama):
    counted(llama.chat(MODEL, GREETING, think=False, keep_alive="300s", options=FEW | {"num_ctx": 4096, "mirostat": 0}))
