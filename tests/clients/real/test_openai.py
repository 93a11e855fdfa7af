"""Tests openai-python with the real small model: everything that a program using it would notice."""

import asyncio
import io
import json
import time
import wave
from typing import Literal

import jsonschema
import openai
import pytest
from pydantic import BaseModel, Field

from conftest import MODEL, SAMPLES_PER_SECOND, SECONDS_MAX
from schemas import PERSON, TOOLS, WEATHER_TOOL, parameters_of

GREETING = [{"role": "user", "content": "Say hello to the harbour master."}]
WEATHER_WISH = [{"role": "user", "content": "How will the weather be in Porto this week?"}]
NAMED = {"type": "function", "function": {"name": "weather_of"}}
# At temperature 0 the model generates up to its limit, unless the client stops it.
LONG_TOKENS = 1500
LONG = {
    "model": MODEL, "max_tokens": LONG_TOKENS, "temperature": 0,
    "messages": [{"role": "user", "content": "Count from 1 to 1000, in words."}],
}


# The texts are short, because the client rejects an answer that reached its token limit.
class Person(BaseModel):
    name: str = Field(max_length=24)
    age: int = Field(ge=0, le=130)
    mood: Literal["glad", "calm", "cross"]


class WeatherOf(BaseModel):
    """The weather forecast of a city."""

    city: str = Field(max_length=24)
    unit: Literal["celsius", "fahrenheit"]


class TagsOf(BaseModel):
    """The tags of a ship."""

    # LangChain and others send a set as `uniqueItems`, which no grammar enforces.
    tags: set[str] = Field(max_length=3)


def ask(client, **settings):
    return client.chat.completions.create(**({"model": MODEL, "messages": GREETING, "max_tokens": 32} | settings))


def test_an_answer_that_is_not_streamed_is_complete(client):
    answer = ask(client, temperature=0)
    choice, usage = answer.choices[0], answer.usage
    assert (answer.object, answer.model, choice.message.role) == ("chat.completion", MODEL, "assistant")
    assert choice.message.content.strip()
    assert choice.finish_reason in ("stop", "length")
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens <= 32


def test_a_stream_has_one_id_one_finish_reason_and_its_usage_last(client):
    stream = ask(client, stream=True, stream_options={"include_usage": True})
    *chunks, last = list(stream)
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in [*chunks, last]}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks).strip()
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] in (["stop"], ["length"])
    assert {chunk.usage for chunk in chunks} == {None}
    assert last.choices == []
    assert 0 < last.usage.completion_tokens <= 32


def test_a_stream_without_usage_has_a_choice_in_every_chunk(client):
    assert all(len(chunk.choices) == 1 for chunk in ask(client, stream=True))


def test_the_stream_helper_returns_the_same_answer_as_its_events(client):
    # The helper rejects an answer that reached its token limit.
    with client.chat.completions.stream(
        model=MODEL, messages=GREETING, max_tokens=200, temperature=0, stop=[".", "!", "?", "\n"]
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert len(pieces) > 1
    assert "".join(pieces) == final.choices[0].message.content


def test_stop_and_length_end_an_answer(client):
    short = ask(client, max_tokens=3, temperature=0)
    assert (short.usage.completion_tokens, short.choices[0].finish_reason) == (3, "length")
    counting = [{"role": "user", "content": "Write: one, two, three, four, five, six."}]
    stopped = ask(client, messages=counting, temperature=0, stop=[","], max_tokens=200)
    assert stopped.choices[0].finish_reason == "stop"
    assert "," not in stopped.choices[0].message.content


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_a_limit_of_zero_or_less_is_no_limit(client, max_tokens):
    answer = ask(client, max_tokens=max_tokens, temperature=0, stop=[".", "!", "?", "\n"])
    assert (bool(answer.choices[0].message.content.strip()), answer.choices[0].finish_reason) == (True, "stop")


def test_log_probabilities_come_with_their_alternatives(client):
    answer = ask(client, logprobs=True, top_logprobs=3, temperature=0, max_tokens=8)
    tokens = answer.choices[0].logprobs.content
    assert len(tokens) == answer.usage.completion_tokens
    for token in tokens:
        assert token.logprob <= 0
        assert len(token.top_logprobs) == 3
        # At temperature 0 the model takes the most likely token.
        assert token.top_logprobs[0].token == token.token


def test_several_answers_to_one_question(client):
    answer = ask(client, n=2, temperature=1, max_tokens=8)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert all(choice.message.content for choice in answer.choices)


def test_fields_of_openai_alone_are_accepted(client):
    answer = ask(
        client,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        ],
        reasoning_effort="none", user="u-1", store=True, service_tier="auto", metadata={"a": "b"}, seed=-1,
        extra_body={"a_field_of_next_year": {"x": 1}},
    )
    assert answer.choices[0].message.content


@pytest.mark.parametrize("choice, names", [("required", {"weather_of", "set_alarm"}), (NAMED, {"weather_of"})])
def test_a_required_tool_call_is_made(client, choice, names):
    answer = ask(client, messages=WEATHER_WISH, tools=TOOLS, tool_choice=choice, max_tokens=128)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls
    for call in message.tool_calls:
        assert call.type == "function" and call.id and call.function.name in names
        jsonschema.validate(json.loads(call.function.arguments), parameters_of(call.function.name))


def test_the_pieces_of_a_streamed_call_form_a_valid_call(client):
    with client.chat.completions.stream(
        model=MODEL, messages=WEATHER_WISH, tools=[strict(WEATHER_TOOL)], tool_choice=NAMED, max_tokens=128
    ) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    assert [event.name for event in done] == ["weather_of"]
    assert done[0].arguments == call.function.arguments
    jsonschema.validate(json.loads(call.function.arguments), parameters_of("weather_of"))


def strict(tool):
    return tool | {"function": tool["function"] | {"strict": True}}


def test_a_tool_result_is_accepted(client):
    call = ask(client, messages=WEATHER_WISH, tools=TOOLS, tool_choice=NAMED, max_tokens=128).choices[0].message
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": '{"forecast":"rain"}'}
    answer = ask(client, messages=[*WEATHER_WISH, call.model_dump(exclude_none=True), result], tools=TOOLS, tool_choice="none")
    assert answer.choices[0].message.content
    assert not answer.choices[0].message.tool_calls


def test_a_pydantic_model_is_parsed(client):
    answer = client.chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": "Describe a sailor."}], response_format=Person, max_tokens=96
    )
    assert isinstance(answer.choices[0].message.parsed, Person)


def test_a_pydantic_model_is_parsed_from_a_stream(client):
    with client.chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": "Describe a sailor."}], response_format=Person, max_tokens=96
    ) as stream:
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Person)


def test_a_pydantic_tool_is_parsed(client):
    answer = client.chat.completions.parse(
        model=MODEL, messages=WEATHER_WISH, tools=[openai.pydantic_function_tool(WeatherOf)],
        tool_choice="required", max_tokens=128,
    )
    assert isinstance(answer.choices[0].message.tool_calls[0].function.parsed_arguments, WeatherOf)


def test_a_tool_with_a_set_is_called_and_what_is_not_enforced_is_named(client):
    function = {"name": "tags_of", "description": TagsOf.__doc__, "parameters": TagsOf.model_json_schema()}
    tool = {"type": "function", "function": function}
    settings = {"model": MODEL, "messages": WEATHER_WISH, "tool_choice": "required", "max_tokens": 128}
    raw = client.chat.completions.with_raw_response.create(tools=[tool], **settings)
    assert raw.headers["x-hob-ignored"] == "tools.tags_of.uniqueItems"
    calls = raw.parse().choices[0].message.tool_calls
    assert calls
    for call in calls:
        TagsOf.model_validate_json(call.function.arguments)
    with pytest.raises(openai.BadRequestError, match="'uniqueItems' at 'tags_of.parameters.properties.tags'"):
        client.chat.completions.create(tools=[strict(tool)], **settings)


def test_json_mode_gives_an_object(client):
    wish = [{"role": "user", "content": "Describe a ship as JSON."}]
    answer = ask(client, messages=wish, response_format={"type": "json_object"}, max_tokens=96)
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_an_answer_matches_its_schema_with_few_tokens(client):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    answer = ask(client, response_format=form, temperature=1, seed=7, max_tokens=40)
    jsonschema.validate(json.loads(answer.choices[0].message.content), PERSON)


def test_completions_continue_a_text(client, lenient):
    answer = client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=8, temperature=0)
    assert answer.choices[0].text
    assert answer.usage.completion_tokens == 8
    echoed = client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=8, temperature=0, echo=True)
    assert echoed.choices[0].text.startswith("One, two, three,")
    # OpenAI sends `finish_reason: null` in all chunks except the last. The client's strict types do not accept null.
    stream = lenient.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=8, temperature=0, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream)


def test_the_tokens_of_an_echoed_prompt_have_log_probabilities(lenient):
    # The client's strict types do not accept that the first token has none.
    answer = lenient.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=1, echo=True, logprobs=1)
    logprobs = answer.choices[0].logprobs
    assert "".join(logprobs.tokens) == answer.choices[0].text
    first, *others = logprobs.token_logprobs
    assert first is None
    assert len(others) > 4 and all(logprob <= 0 for logprob in others)


def test_embeddings_are_the_same_in_both_formats(lenient):
    texts = ["A boat in the harbour.", "A ship in the port.", "The tax return is late."]
    coded = lenient.embeddings.create(model=MODEL, input=texts)
    plain = lenient.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    assert [item.index for item in coded.data] == [0, 1, 2]
    assert coded.usage.prompt_tokens > 3
    for one, other in zip(coded.data, plain.data):
        assert len(one.embedding) == len(other.embedding) > 100
        assert one.embedding == pytest.approx(other.embedding, rel=1e-4, abs=1e-5)
        assert sum(x * x for x in one.embedding) == pytest.approx(1, abs=1e-3)
    short = lenient.embeddings.create(model=MODEL, input=texts[0], dimensions=64).data[0].embedding
    assert len(short) == 64
    assert sum(x * x for x in short) == pytest.approx(1, abs=1e-3)


def test_a_recording_becomes_the_same_words_in_every_format(client, question):
    recording = io.BytesIO()
    with wave.open(recording, "wb") as file:
        file.setparams((1, 2, SAMPLES_PER_SECOND, 0, "NONE", None))
        file.writeframes(question)

    def hear(**settings):
        # The name says another format than the content.
        file = ("question.mp3", recording.getvalue())
        return client.audio.transcriptions.create(file=file, model="whisper-1", language="en", **settings)

    text = hear().text
    assert "london" in text.lower()
    assert hear(response_format="text").strip() == text
    assert text in hear(response_format="srt") and text in hear(response_format="vtt")
    timed = hear(response_format="verbose_json", timestamp_granularities=["segment", "word"])
    assert (timed.text, timed.language, [word.word for word in timed.words]) == (text, "english", text.split())
    # A second of silence follows the question.
    assert 0 < timed.words[-1].end <= timed.segments[-1].end < timed.duration - 0.3
    *deltas, done = hear(stream=True)
    assert "".join(delta.delta for delta in deltas).strip() == done.text.strip() == text


def test_models_are_listed_and_found(client):
    models = client.models.list().data
    assert MODEL in [model.id for model in models]
    assert {model.object for model in models} == {"model"}
    assert client.models.retrieve(MODEL).id == MODEL


@pytest.mark.parametrize(
    "wrong, kind, code",
    [
        ({"model": "gpt-unknown"}, openai.NotFoundError, "model_not_found"),
        ({"messages": []}, openai.BadRequestError, None),
        ({"temperature": 3}, openai.BadRequestError, None),
        ({"extra_body": {"temperature": "hot"}}, openai.BadRequestError, None),
        ({"messages": [{"role": "user", "content": "word " * 20000}]}, openai.BadRequestError, "context_length_exceeded"),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, openai.BadRequestError, None),
    ],
    ids=["unknown model", "no messages", "too hot", "not a number", "too long", "unknown part"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_errors_are_the_right_exceptions(client, wrong, kind, code, stream):
    with pytest.raises(kind) as caught:
        ask(client, stream=stream, **wrong)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.message
    assert code is None or caught.value.code == code


def test_unknown_paths_and_wrong_keys_give_different_errors(client, keyed):
    with pytest.raises(openai.NotFoundError):
        client.get("/no/such/route", cast_to=object)
    with pytest.raises(openai.AuthenticationError) as caught:
        keyed.with_options(api_key="another").models.retrieve(MODEL)
    assert caught.value.code == "invalid_api_key"
    assert keyed.models.list().data is not None


def test_a_client_that_disconnects_frees_its_slot(client):
    seconds_per_token = pace(client)
    # More streams than hob has slots. If they continued, the next request would wait for all tokens of at least one stream.
    for _ in range(8):
        with client.chat.completions.create(stream=True, **LONG) as stream:
            for _, _ in zip(range(3), stream):
                pass
    started = time.monotonic()
    assert ask(client, max_tokens=4).choices[0].message.content is not None
    assert time.monotonic() - started < LONG_TOKENS / 2 * seconds_per_token


def pace(client):
    """Measures the seconds per token of one answer on this machine at this moment."""
    started = time.monotonic()
    answer = ask(client, max_tokens=64, temperature=0)
    return (time.monotonic() - started) / answer.usage.completion_tokens


def test_streams_run_in_parallel(url):
    async def read(client):
        stream = await client.chat.completions.create(
            # Long enough to take seconds, so that an answer cannot begin and end within one pause of this process.
            model=MODEL, messages=GREETING, max_tokens=128, temperature=0, stream=True,
        )
        stamps = [time.monotonic() async for chunk in stream if chunk.choices[0].delta.content]
        return stamps[0], stamps[-1]

    async def together():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0, timeout=SECONDS_MAX) as client:
            return await asyncio.gather(*(read(client) for _ in range(4)))

    spans = asyncio.run(together())
    # Every stream began before any stream ended.
    assert max(first for first, _ in spans) < min(last for _, last in spans)


def test_a_response_is_stored_continued_and_deleted(client):
    settings = {"model": MODEL, "max_output_tokens": 24, "temperature": 0}
    first = client.responses.create(input="Say hello to the harbour master.", metadata={"berth": "4"}, **settings)
    assert first.output_text.strip() and first.usage.output_tokens <= 24
    assert client.responses.retrieve(first.id) == first
    events = list(client.responses.create(input="Again.", previous_response_id=first.id, stream=True, **settings))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1].response
    assert last.output_text == "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert last.usage.input_tokens > first.usage.input_tokens
    assert len(list(client.responses.input_items.list(last.id))) == 3
    counted = client.responses.input_tokens.count(model=MODEL, input="Again.", previous_response_id=first.id)
    assert counted.input_tokens == last.usage.input_tokens
    again = list(client.responses.retrieve(last.id, stream=True, starting_after=1))
    assert again[0].sequence_number == 2 and again[-1].response == last
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_a_conversation_is_kept_for_responses(client):
    conversation = client.conversations.create(items=[{"role": "user", "content": "My boat is called Ida."}])
    client.responses.create(model=MODEL, input="Hello.", conversation=conversation.id, max_output_tokens=8)
    items = list(client.conversations.items.list(conversation.id, order="asc", limit=2))
    assert [item.role for item in items] == ["user", "user", "assistant"], "both pages"
    client.conversations.items.delete(items[0].id, conversation_id=conversation.id)
    assert client.conversations.update(conversation.id, metadata={"boat": "Ida"}).metadata == {"boat": "Ida"}
    assert client.conversations.delete(conversation.id).deleted


def test_a_response_logs_probabilities_and_follows_a_schema(client):
    schema = {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}
    response = client.responses.create(
        model=MODEL, input="Who is the captain?", text={"format": schema}, max_output_tokens=200, top_logprobs=2,
        include=["message.output_text.logprobs"],
    )
    jsonschema.validate(json.loads(response.output_text), PERSON)
    assert len(response.output[0].content[0].logprobs[0].top_logprobs) == 2
