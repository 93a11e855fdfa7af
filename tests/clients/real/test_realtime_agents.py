"""Tests spoken conversations with openai-agents, which checks each event against its own types and reports a wrong one as an error."""

import asyncio
import os

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner

from conftest import SAMPLES_PER_SECOND, SECONDS_MAX

# 100 ms of samples of 2 bytes.
PIECE = SAMPLES_PER_SECOND // 10 * 2


def settings(url, model):
    """The SDK ignores OPENAI_BASE_URL for conversations, and names OpenAI's model in each change of the settings. The address wins."""
    address = f"{url.replace('http', 'ws', 1)}/v1/realtime?model={model}"
    return {"url": address, "api_key": "not checked", "initial_model_settings": {"max_output_tokens": 20}}


def converse(agent, model_config, talk):
    async def all_of_it():
        async with await RealtimeRunner(agent).run(model_config=model_config) as session:
            return await talk(session)

    return asyncio.run(asyncio.wait_for(all_of_it(), SECONDS_MAX))


async def until_answered(session):
    """The events to the end of an answer."""
    events = []
    async for event in session:
        assert event.type != "error", event
        events.append(event)
        if event.type == "agent_end":
            return events


def kinds(events):
    return [event.type for event in events]


def sound(events):
    return b"".join(event.audio.data for event in events if event.type == "audio")


def test_a_message_and_then_speech_that_interrupts_are_answered(url, question):
    agent = RealtimeAgent(name="Harbour", instructions="Answer in one short sentence.")

    async def talk(session):
        await session.send_message("Say hello.")
        written = await until_answered(session)
        for start in range(0, len(question), PIECE):
            await session.send_audio(question[start : start + PIECE])
        return written, await until_answered(session)

    written, spoken = converse(agent, settings(url, "gpt-realtime"), talk)
    assert len(sound(written)) > SAMPLES_PER_SECOND / 2
    # The first answer was still playing.
    assert "audio_interrupted" in kinds(spoken)
    assert len(sound(spoken)) > SAMPLES_PER_SECOND / 2
    heard = [item.content[0].transcript for event in spoken if event.type == "history_updated"
             for item in event.history if item.role == "user" and item.content[0].type == "input_audio"]
    assert any("london" in (text or "").lower() for text in heard), heard


def test_a_tool_of_the_client_is_called_in_a_conversation():
    called = []

    @function_tool
    def tide_of(city: str) -> str:
        """The tide of a city's harbour."""
        called.append(city)
        return "low tide at 16:40"

    agent = RealtimeAgent(name="Harbour", tools=[tide_of])

    async def talk(session):
        await session.send_message("When is low tide in Porto?")
        events = await until_answered(session)
        return events + await until_answered(session)

    events = converse(agent, settings(os.environ["HOB_SCRIPTED_URL"], "scripted"), talk)
    assert called == ["Porto"]
    assert {"tool_start", "tool_end"} <= set(kinds(events))
    assert len(sound(events)) > SAMPLES_PER_SECOND / 2
