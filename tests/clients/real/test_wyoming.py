"""Drives hob's Wyoming ports with the library that Home Assistant uses, as Home Assistant uses it, with the real models.

Environment: HOB_WYOMING_URL (the same server over HTTP), HOB_WYOMING_SPEECH and HOB_WYOMING_TRANSCRIPTION (ports).
"""

import array
import asyncio
import functools
import json
import os
import re
import time
import urllib.request

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info, SelectProgram
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped, SynthesizeVoice,
)

HERE = "127.0.0.1"
SPEECH = f"tcp://{HERE}:{os.environ['HOB_WYOMING_SPEECH']}"
TRANSCRIPTION = f"tcp://{HERE}:{os.environ['HOB_WYOMING_TRANSCRIPTION']}"
# Time limit of one event. It ends a hanging test. Models may have to load first.
SECONDS_MAX = 120
# A satellite's microphone.
SAMPLES_PER_CHUNK = 1024
WORDS = "The kitchen light is on, and the window in the bedroom is open. Shall I close it before the rain comes?"


def run(test):
    return asyncio.run(asyncio.wait_for(test, SECONDS_MAX * 3))


def connected(uri):
    return AsyncClient.from_uri(uri, read_timeout=SECONDS_MAX)


async def described(uri):
    async with connected(uri) as client:
        await client.write_event(Describe().event())
        event = await client.read_event()
        assert Info.is_type(event.type)
        return Info.from_event(event)


class Heard:
    """Sound that was received: the bytes, when they came, and the events around them."""

    def __init__(self):
        self.start, self.sound, self.kinds, self.times = None, b"", [], []

    def take(self, event):
        assert event is not None, f"the connection ended after {self.kinds}"
        assert not Error.is_type(event.type), Error.from_event(event)
        if not self.kinds or self.kinds[-1] != event.type:
            self.kinds.append(event.type)
        if AudioStart.is_type(event.type):
            start = AudioStart.from_event(event)
            layout = (start.rate, start.width, start.channels)
            assert self.start in (None, layout), "the layout never changes"
            self.start = layout
        if AudioChunk.is_type(event.type):
            chunk = AudioChunk.from_event(event)
            assert (chunk.rate, chunk.width, chunk.channels) == self.start
            self.sound += chunk.audio
            self.times.append(time.monotonic())

    @property
    def seconds(self):
        rate, width, channels = self.start
        return len(self.sound) / (rate * width * channels)


async def spoken(text, voice=None, program=None):
    """One whole text, as Home Assistant requests it from servers that do not stream."""
    heard = Heard()
    async with connected(SPEECH) as client:
        if program:
            await client.write_event(SelectProgram(name=program).event())
        await client.write_event(Synthesize(text=text, voice=voice).event())
        while not heard.kinds or not AudioStop.is_type(heard.kinds[-1]):
            heard.take(await client.read_event())
    assert heard.kinds == ["audio-start", "audio-chunk", "audio-stop"]
    return heard


@functools.cache
def spoken_words():
    return run(spoken(WORDS))


async def spoken_while_written(pieces, pause_s=0.0, voice=None, waits_at=None):
    """A text in pieces, as Home Assistant sends it while a chat model writes. Also when each piece was written.

    The piece number `waits_at` is not written before the first sound has come.
    """
    heard, written = Heard(), []

    async def write(client):
        await client.write_event(SynthesizeStart(voice=voice).event())
        for at, piece in enumerate(pieces):
            while at == waits_at and not heard.times:
                await asyncio.sleep(0.02)
            written.append(time.monotonic())
            await client.write_event(SynthesizeChunk(text=piece).event())
            await asyncio.sleep(pause_s)
        # The full copy, for servers that do not stream.
        await client.write_event(Synthesize(text="".join(pieces), voice=voice).event())
        await client.write_event(SynthesizeStop().event())
        written.append(time.monotonic())

    async with connected(SPEECH) as client:
        writing = asyncio.create_task(write(client))
        while not heard.kinds or not SynthesizeStopped.is_type(heard.kinds[-1]):
            heard.take(await client.read_event())
        await writing
    return heard, written


async def heard_by_hob(sound, layout, pace=0.0, **wish):
    """Sends sound in chunks of 1024 samples. `pace` 1 is real time. Returns the events and when the last chunk was sent."""
    rate, width, channels = layout
    size = SAMPLES_PER_CHUNK * width * channels
    events = []
    async with connected(TRANSCRIPTION) as client:
        await client.write_event(Transcribe(**wish).event())
        await client.write_event(AudioStart(rate=rate, width=width, channels=channels).event())
        begun = time.monotonic()
        for at in range(0, len(sound), size):
            chunk = AudioChunk(rate=rate, width=width, channels=channels, audio=sound[at:at + size])
            await client.write_event(chunk.event())
            due = begun + pace * (at + size) / (rate * width * channels)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await client.write_event(AudioStop().event())
        stopped = time.monotonic()
        while not events or not TranscriptStop.is_type(events[-1].type):
            event = await client.read_event()
            assert event is not None and not Error.is_type(event.type), event
            events.append(event)
        return events, time.monotonic() - stopped


def text_of(events):
    return next(Transcript.from_event(event).text for event in events if Transcript.is_type(event.type))


def words(text):
    return re.sub(r"[^a-z ]", "", text.lower()).split()


def word_errors(said, heard):
    """The edit distance between two texts, in words."""
    said, heard = words(said), words(heard)
    row = list(range(len(heard) + 1))
    for i, one in enumerate(said, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (one != other))
    return row[-1]


def at_16_khz(heard):
    """Every second and third sample of 24 kHz, averaged in between: enough for speech."""
    assert heard.start == (24000, 2, 1)
    samples = array.array("h", heard.sound)
    return array.array("h", [
        sample for a, b, c in zip(samples[::3], samples[1::3], samples[2::3]) for sample in (a, (b + c) // 2)
    ]).tobytes()


def test_each_port_describes_what_it_serves():
    info = run(described(SPEECH))
    assert [program.name for program in info.tts][:2] == ["kokoro", "narrator"] and not info.asr
    kokoro = info.tts[0]
    assert kokoro.installed and kokoro.supports_synthesize_streaming and kokoro.version
    voices = {voice.name: voice for voice in kokoro.voices}
    assert voices["af_heart"].languages == ["en-US"] and voices["bm_fable"].languages == ["en-GB"]
    assert all(voice.installed and voice.description for voice in kokoro.voices)

    info = run(described(TRANSCRIPTION))
    whisper = info.asr[0]
    assert whisper.name == "whisper-base" and whisper.installed and not info.tts
    assert whisper.supports_transcript_streaming and whisper.requires_external_vad
    assert {"en", "de", "ja"} <= set(whisper.models[0].languages) and len(whisper.models[0].languages) == 99


def test_a_ping_is_answered_and_unknown_events_are_ignored():
    async def test():
        for uri in (SPEECH, TRANSCRIPTION):
            async with connected(uri) as client:
                await client.write_event(Event(type="run-satellite", data={"a": [1]}, payload=b"\n{"))
                await client.write_event(Ping(text="still there?").event())
                event = await client.read_event()
                assert Pong.is_type(event.type) and Pong.from_event(event).text == "still there?"

    run(test())


def test_what_hob_says_is_what_hob_hears():
    heard = spoken_words()
    assert heard.start == (24000, 2, 1) and 4 < heard.seconds < 12
    events, _ = run(heard_by_hob(at_16_khz(heard), (16000, 2, 1), language="en"))
    assert word_errors(WORDS, text_of(events)) <= 1, text_of(events)
    assert TranscriptStart.is_type(events[0].type)
    pieces = [TranscriptChunk.from_event(event).text for event in events if TranscriptChunk.is_type(event.type)]
    assert "".join(pieces).strip() == text_of(events)
    # In the layout in which it was spoken, too.
    events, _ = run(heard_by_hob(heard.sound, heard.start, language="en"))
    assert word_errors(WORDS, text_of(events)) <= 1, text_of(events)


def test_speech_begins_while_the_text_is_written_and_has_no_gap():
    pieces = re.findall(r"\S+\s*", WORDS)
    # On a busy machine sound comes late. The third word of the second sentence waits for it; if hob waited too, the read
    # would time out.
    second = pieces.index("Shall ")
    heard, written = run(spoken_while_written(pieces, pause_s=0.2, waits_at=second + 2))
    assert heard.times[0] < written[second + 2]
    gaps = [later - earlier for earlier, later in zip(heard.times, heard.times[1:])]
    assert max(gaps) < 5, f"a satellite gives up after 5 s: {max(gaps):.1f} s"
    assert heard.kinds[0] == "audio-start" and heard.kinds[-2:] == ["audio-stop", "synthesize-stopped"]
    events, _ = run(heard_by_hob(heard.sound, heard.start, language="en"))
    assert word_errors(WORDS, text_of(events)) <= 1, text_of(events)


def test_a_writer_who_pauses_for_long_leaves_no_gap():
    heard, _ = run(spoken_while_written(["One moment, please.", " Here it is."], pause_s=8))
    gaps = [later - earlier for earlier, later in zip(heard.times, heard.times[1:])]
    assert max(gaps) < 5, f"{max(gaps):.1f} s"
    events, _ = run(heard_by_hob(heard.sound, heard.start, language="en"))
    assert word_errors("One moment please. Here it is.", text_of(events)) <= 1, text_of(events)


def test_a_satellite_s_pace_is_followed_and_the_text_comes_soon_after_the_end():
    heard = spoken_words()
    sound = at_16_khz(heard)
    events, after = run(heard_by_hob(sound, (16000, 2, 1), pace=1.0, language="en"))
    assert word_errors(WORDS, text_of(events)) <= 1, text_of(events)
    print(f"{heard.seconds:.1f} s of speech in real time: its text {after * 1000:.0f} ms after the end")
    assert after < heard.seconds, "transcription runs while the speaker speaks"


def test_two_clients_at_once_get_their_own_answers():
    texts = ["The first guest is called Henry Miller.", "Twelve green apples lie under the old tree."]

    async def test():
        heard = await asyncio.gather(*(spoken(text, SynthesizeVoice(name=voice)) for text, voice in zip(texts, ["af_heart", "bm_fable"])))
        return await asyncio.gather(*(heard_by_hob(one.sound, one.start, language="en") for one in heard))

    for text, (events, _) in zip(texts, run(test())):
        assert word_errors(text, text_of(events)) <= 1, text_of(events)


def test_an_alias_is_a_program_and_an_unknown_voice_an_error():
    assert run(spoken("Good evening.", program="narrator")).seconds > 0.5

    async def test():
        async with connected(SPEECH) as client:
            await client.write_event(Synthesize(text="Hi", voice=SynthesizeVoice(name="absent")).event())
            event = await client.read_event()
            assert Error.is_type(event.type) and "'absent'" in Error.from_event(event).text
            # Home Assistant ignores errors. The end of the connection tells it.
            assert await client.read_event() is None

    run(test())


def test_requests_are_in_the_view_of_requests():
    run(spoken("Good evening."))
    with urllib.request.urlopen(f"{os.environ['HOB_WYOMING_URL']}/api/hob/now", timeout=SECONDS_MAX) as answer:
        recent = json.load(answer)["recent"]
    assert recent[0]["route"] == "speech" and recent[0]["outcome"] == "complete", recent[0]


