"""Tests spoken conversations with openai-python. Every event of hob is checked against the client's own types."""

import base64
import contextlib
import json
import os
import threading
import typing

import pytest
from openai.types.realtime import RealtimeServerEvent
from websockets.exceptions import InvalidStatus

from conftest import SAMPLES_PER_SECOND, SECONDS_MAX, official

# The client's type of each event.
EVENTS = {kind.model_fields["type"].annotation.__args__[0]: kind
          for kind in typing.get_args(typing.get_args(RealtimeServerEvent)[0])}
# 100 ms of samples of 2 bytes.
PIECE = SAMPLES_PER_SECOND // 10 * 2
# The order in which a spoken turn is reported.
TURN = [
    "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
    "conversation.item.added", "conversation.item.input_audio_transcription.completed", "response.created",
    "response.output_item.added", "response.content_part.added", "response.output_audio.delta",
    "response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
    "response.output_item.done", "response.done",
]
SPOKEN = {
    "type": "realtime", "instructions": "Answer in one short sentence.", "max_output_tokens": 60,
    "audio": {"input": {"transcription": {"model": "whisper-1", "language": "en"},
                        "turn_detection": {"type": "server_vad", "silence_duration_ms": 400}},
              "output": {"voice": "ash"}},
}


class Conversation:
    """A connection whose events are checked."""

    def __init__(self, connection):
        self.connection = connection

    def next(self):
        event = json.loads(self.connection.recv_bytes())
        EVENTS[event["type"]].model_validate(event)
        return event

    def until(self, kind, **fields):
        """The events to the first of this kind. Closes the connection if it comes too late, which ends the wait."""
        limit = threading.Timer(SECONDS_MAX, self.connection.close)
        limit.start()
        events = []
        try:
            while True:
                events.append(self.next())
                assert events[-1]["type"] != "error", events[-1]
                if events[-1]["type"] == kind and all(events[-1][name] == value for name, value in fields.items()):
                    return events
        finally:
            limit.cancel()

    def say(self, samples):
        for start in range(0, len(samples), PIECE):
            piece = base64.b64encode(samples[start : start + PIECE]).decode()
            self.connection.input_audio_buffer.append(audio=piece)

    def write(self, text):
        content = [{"type": "input_text", "text": text}]
        self.connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        self.until("conversation.item.done")


@contextlib.contextmanager
def conversation(client, session=None, **settings):
    options = {"open_timeout": SECONDS_MAX}
    with client.realtime.connect(model="gpt-realtime", websocket_connection_options=options, **settings) as connection:
        opened = Conversation(connection)
        created = opened.until("session.created")[-1]["session"]
        assert created["audio"]["input"]["turn_detection"]["interrupt_response"] is True
        if session:
            connection.session.update(session=session)
            opened.until("session.updated")
        yield opened


def kinds(events):
    return [event["type"] for event in events]


def sound(events):
    deltas = [event["delta"] for event in events if event["type"] == "response.output_audio.delta"]
    return b"".join(map(base64.b64decode, deltas))


def test_a_spoken_question_gets_a_spoken_answer(client, question):
    # All of the answer is spoken, so it is short.
    with conversation(client, SPOKEN | {"max_output_tokens": 20}) as talk:
        talk.say(question)
        events = talk.until("response.done")
        first = [kinds(events).index(kind) for kind in TURN]
        assert first == sorted(first), kinds(events)
        heard = events[first[4]]
        assert "london" in heard["transcript"].lower() and heard["usage"]["type"] == "duration"
        response = events[-1]["response"]
        assert response["status"] in ("completed", "incomplete")
        [item] = response["output"]
        assert item["content"][0]["type"] == "output_audio" and item["content"][0]["transcript"].strip()
        assert len(sound(events)) > SAMPLES_PER_SECOND / 2


def test_speech_interrupts_an_answer_and_nothing_of_it_follows(client, question):
    session = SPOKEN | {"instructions": "Tell a long story.", "max_output_tokens": 400}
    with conversation(client, session) as talk:
        talk.say(question)
        events = talk.until("response.output_audio.delta")
        item, response = events[-1]["item_id"], events[-1]["response_id"]
        talk.say(question)
        events = talk.until("response.done")
        done = events[-1]["response"]
        assert (done["id"], done["status"], done["status_details"]["reason"]) == (response, "cancelled", "turn_detected")
        talk.connection.conversation.item.truncate(item_id=item, content_index=0, audio_end_ms=100)
        truncated = talk.until("conversation.item.truncated")
        later = truncated + talk.until("response.output_audio.delta")
        assert all(event.get("response_id") != response for event in later)


def test_a_written_turn_is_answered_as_text(client):
    with conversation(client, {"type": "realtime", "output_modalities": ["text"]}) as talk:
        talk.write("Say hello.")
        talk.connection.response.create(response={"max_output_tokens": 20})
        events = talk.until("response.done")
        text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        assert text.strip() and text == events[-1]["response"]["output"][0]["content"][0]["text"]
        assert events[-1]["response"]["usage"]["output_tokens"] <= 20


def test_a_client_may_end_its_turns_and_cancel_answers(client, question):
    session = SPOKEN | {"audio": {"input": {"turn_detection": None}}}
    with conversation(client, session) as talk:
        talk.say(question)
        talk.connection.input_audio_buffer.commit()
        talk.until("conversation.item.done")
        talk.connection.response.create()
        talk.until("response.output_audio.delta")
        talk.connection.response.cancel()
        done = talk.until("response.done")[-1]["response"]
        assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
        talk.connection.response.cancel()
        assert talk.next()["error"]["code"] == "response_cancel_not_active"


def test_a_wrong_event_is_an_error_and_the_conversation_goes_on(client):
    with conversation(client) as talk:
        talk.connection.send_raw(json.dumps({"type": "session.dance", "event_id": "mine"}))
        error = talk.next()
        assert (error["type"], error["error"]["event_id"]) == ("error", "mine")
        talk.connection.send_raw("no JSON")
        assert talk.next()["type"] == "error"
        talk.connection.session.update(session={"type": "realtime", "instructions": "Be brief."})
        assert talk.until("session.updated")[-1]["session"]["instructions"] == "Be brief."


def test_a_secret_opens_a_session_with_its_settings(keyed):
    secret = keyed.realtime.client_secrets.create(
        expires_after={"anchor": "created_at", "seconds": 60},
        session={"type": "realtime", "instructions": "Be kind.", "output_modalities": ["text"]},
    )
    assert secret.session.instructions == "Be kind."
    with official(os.environ["HOB_KEYED_URL"], secret.value) as client, conversation(client) as talk:
        talk.connection.session.update(session={"type": "realtime"})
        assert talk.until("session.updated")[-1]["session"]["instructions"] == "Be kind."
    with official(os.environ["HOB_KEYED_URL"], "ek_wrong") as client, pytest.raises(InvalidStatus, match="401"):
        client.realtime.connect(model="gpt-realtime").enter()
