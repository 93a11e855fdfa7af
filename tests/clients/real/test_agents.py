"""Tests openai-agents on the Responses API, which is its default, and on the chat API, with a scripted model.

The SDK's own integration tests need a model that follows instructions and are not in its package. These cover the same:
tools, approval, handoffs, structured answers, streams, settings, and conversations that the server or the client keeps.
"""

import asyncio
import os

import agents
import openai
import pytest
from openai.types.shared import Reasoning
from pydantic import BaseModel

# Otherwise the SDK sends its traces to OpenAI.
CONFIG = agents.RunConfig(tracing_disabled=True)
# The client belongs to one event loop.
LOOP = asyncio.Runner()


class Depth(BaseModel):
    metres: int
    note: str | None = None


@pytest.fixture(scope="module", autouse=True)
def model():
    client = openai.AsyncOpenAI(base_url=f"{os.environ['HOB_SCRIPTED_URL']}/v1", api_key="not checked", max_retries=0)
    agents.set_default_openai_client(client, use_for_tracing=False)
    return client


def agent(name="Harbour", **settings):
    return agents.Agent(name=name, model="scripted", **settings)


@pytest.fixture
def tide_of():
    """A tool, and the cities that it was called with."""
    called = []

    @agents.function_tool
    def tide_of(city: str) -> str:
        """The tide of a city's harbour."""
        called.append(city)
        return "low tide at 16:40"

    return tide_of, called


def run(who, what, streamed=False, **settings):
    """The result of a run, and the types of its events."""
    async def all_of_it():
        if not streamed:
            return await agents.Runner.run(who, what, run_config=CONFIG, **settings), []
        result = agents.Runner.run_streamed(who, what, run_config=CONFIG, **settings)
        events = [event async for event in result.stream_events()]
        return result, events

    return LOOP.run(all_of_it())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_is_called_and_its_result_is_read(tide_of, streamed):
    tool, called = tide_of
    result, events = run(agent(tools=[tool]), "When is low tide in Porto?", streamed)
    assert (called, result.final_output) == (["Porto"], "Low tide is at 16:40.")
    kinds = [type(item).__name__ for item in result.new_items]
    assert kinds == ["ToolCallItem", "ToolCallOutputItem", "MessageOutputItem"]
    assert result.context_wrapper.usage.total_tokens > 0
    raw = [event.data.type for event in events if event.type == "raw_response_event"]
    assert not streamed or raw.count("response.completed") == 2
    assert not streamed or "response.function_call_arguments.delta" in raw


@pytest.mark.parametrize("streamed", [False, True])
def test_the_chat_api_serves_tools_schemas_and_usage(model, tide_of, streamed):
    tool, called = tide_of
    settings = agents.ModelSettings(include_usage=True, reasoning=Reasoning(effort="none"), extra_args={"max_completion_tokens": 512})
    chat = agents.OpenAIChatCompletionsModel(model="scripted", openai_client=model)
    who = agents.Agent(name="Harbour", model=chat, model_settings=settings, tools=[tool])
    result, events = run(who, "When is low tide in Porto?", streamed)
    assert (called, result.final_output) == (["Porto"], "Low tide is at 16:40.")
    assert result.context_wrapper.usage.total_tokens > 0 and bool(events) == streamed
    who = agents.Agent(name="Harbour", model=chat, model_settings=settings, output_type=Depth)
    assert run(who, "How deep is the harbour?", streamed)[0].final_output == Depth(metres=12)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_out_of_turns_keeps_what_its_tool_gave(tide_of, streamed):
    tool, called = tide_of
    ended = {"max_turns": lambda _: "The turns are over."}
    result, _ = run(agent(tools=[tool]), "When is low tide in Porto?", streamed, max_turns=1, error_handlers=ended)
    assert (called, result.final_output) == (["Porto"], "The turns are over.")
    assert "low tide at 16:40" in str(result.to_input_list())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_can_end_with_the_first_tool(tide_of, streamed):
    settings = agents.ModelSettings(tool_choice="required")
    who = agent(tools=[tide_of[0]], tool_use_behavior="stop_on_first_tool", model_settings=settings)
    result, _ = run(who, "When is low tide in Porto?", streamed)
    assert (result.final_output, result.context_wrapper.usage.requests) == ("low tide at 16:40", 1)


def test_a_run_that_was_cancelled_after_a_tool_goes_on_without_repeating_it(tide_of):
    tool, called = tide_of
    who = agent(tools=[tool])

    async def cancelled():
        result = agents.Runner.run_streamed(who, "When is low tide in Porto?", run_config=CONFIG)
        async for event in result.stream_events():
            if getattr(event, "name", None) == "tool_called":
                result.cancel(mode="after_turn")
        return result

    first = LOOP.run(cancelled())
    assert (first.final_output, first.context_wrapper.usage.requests) == (None, 1)
    second, _ = run(who, first.to_input_list())
    assert (second.final_output, called) == ("Low tide is at 16:40.", ["Porto"])


@pytest.mark.parametrize("streamed", [False, True])
def test_approval_outlives_a_stored_run(streamed):
    called = []

    @agents.function_tool(needs_approval=True)
    def open_gate(gate: str) -> str:
        called.append(gate)
        return f"{gate} is open"

    @agents.function_tool(needs_approval=True)
    def ring_bell() -> str:
        called.append("bell")
        return "it rang"

    who = agent(tools=[open_gate, ring_bell])
    first, _ = run(who, "Open the north gate and ring.", streamed)
    assert ([asked.name for asked in first.interruptions], called) == (["open_gate", "ring_bell"], [])
    state = LOOP.run(agents.RunState.from_string(who, first.to_state().to_string()))
    gate, bell = state.get_interruptions()
    state.approve(gate)
    state.reject(bell, rejection_message="Not at night.")
    second, _ = run(who, state, streamed)
    assert (second.final_output, called) == ("The gate is open. The bell is silent.", ["north"])


@pytest.mark.parametrize("place", ["agent", "run"])
def test_settings_for_other_servers_do_no_harm(place):
    settings = agents.ModelSettings(
        max_tokens=256, temperature=0.5, top_p=0.9, parallel_tool_calls=True, truncation="auto", verbosity="low", store=True,
        reasoning=Reasoning(effort="low", summary="auto"), response_include=["reasoning.encrypted_content"], metadata={"from": "a test"},
        prompt_cache_retention="24h", extra_args={"prompt_cache_key": "a test", "service_tier": "auto"},
    )
    for_agent, for_run = ({"model_settings": settings}, {}) if place == "agent" else ({}, {"model_settings": settings})

    async def asked():
        config = agents.RunConfig(tracing_disabled=True, **for_run)
        return await agents.Runner.run(agent(**for_agent), "Are you set up?", run_config=config)

    assert LOOP.run(asked()).final_output == "I am."


@pytest.mark.parametrize("streamed", [False, True])
def test_a_handoff_changes_the_agent(streamed):
    pilot = agent("Pilot", instructions="You are the pilot.", handoff_description="Guides ships.")
    result, _ = run(agent(handoffs=[pilot]), "Guide my ship in.", streamed)
    assert (result.last_agent.name, result.final_output) == ("Pilot", "Follow me.")


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_follows_a_schema(streamed):
    result, _ = run(agent(output_type=Depth), "How deep is the harbour?", streamed)
    assert result.final_output == Depth(metres=12, note=None)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_server_keeps_the_conversation_of_a_response(streamed):
    first, _ = run(agent(), "Remember the word ORCHID.")
    second, _ = run(agent(), "Which word was it?", streamed, previous_response_id=first.last_response_id)
    assert second.final_output == "It was ORCHID."
    assert second.last_response_id != first.last_response_id


@pytest.mark.parametrize("streamed", [False, True])
def test_the_server_keeps_the_turns_of_one_run(tide_of, streamed):
    result, _ = run(agent(tools=[tide_of[0]]), "When is low tide in Porto?", streamed, auto_previous_response_id=True)
    first, second = result.raw_responses
    assert (result.final_output, result.last_response_id) == ("Low tide is at 16:40.", second.response_id)
    assert first.response_id != second.response_id


def test_the_client_keeps_the_conversation_in_a_file(tide_of, tmp_path):
    for words, answer in [("When is low tide in Porto?", "Low tide is at 16:40."), ("Remember the word ORCHID.", "Stored."), ("Which word was it?", "It was ORCHID.")]:
        session = agents.SQLiteSession("harbour", tmp_path / "harbour.sqlite3")
        result, _ = run(agent(tools=[tide_of[0]]), words, session=session)
        kinds = [item.get("type", "message") for item in LOOP.run(session.get_items())]
        session.close()
        assert result.final_output == answer
    assert kinds == ["message", "function_call", "function_call_output", *["message"] * 5]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_server_keeps_the_conversation_of_a_session(streamed):
    async def two_turns():
        session = agents.OpenAIConversationsSession()
        await agents.Runner.run(agent(), "Remember the word ORCHID.", session=session, run_config=CONFIG)
        if streamed:
            second = agents.Runner.run_streamed(agent(), "Which word was it?", session=session, run_config=CONFIG)
            async for _ in second.stream_events():
                pass
        else:
            second = await agents.Runner.run(agent(), "Which word was it?", session=session, run_config=CONFIG)
        items = await session.get_items()
        await session.clear_session()
        return second.final_output, [item.get("role") for item in items]

    # The order in which the SDK needs them for the next turn.
    assert LOOP.run(two_turns()) == ("It was ORCHID.", ["user", "assistant", "user", "assistant"])


def test_a_conversation_is_continued_by_its_id(model):
    async def two_turns():
        conversation = await model.conversations.create()
        settings = {"conversation_id": conversation.id, "run_config": CONFIG}
        await agents.Runner.run(agent(), "Remember the word ORCHID.", **settings)
        second = await agents.Runner.run(agent(), "Which word was it?", **settings)
        deleted = await model.conversations.delete(conversation.id)
        return second.final_output, deleted.deleted

    assert LOOP.run(two_turns()) == ("It was ORCHID.", True)


def test_a_run_that_sends_everything_again_needs_no_stored_response():
    first, _ = run(agent(model_settings=agents.ModelSettings(store=False)), "Remember the word ORCHID.")
    again = [*first.to_input_list(), {"role": "user", "content": "Which word was it?"}]
    second, _ = run(agent(model_settings=agents.ModelSettings(store=False)), again)
    assert second.final_output == "It was ORCHID."


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_breaks_off_is_an_error(streamed):
    with pytest.raises((openai.APIError, agents.AgentsException)):
        run(agent(), "Break off.", streamed)
