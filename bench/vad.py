"""How often hob hears speech in noise, how much speech it misses, and how many words it invents.

Environment: HOB (the binary), HOB_HOME (a home with speech, transcription and turn taking). Each sound goes through a
transcription session of the realtime API with `server_vad`: what counts is `speech_started`, as a client sees it.
Sound is sent faster than it lasts, because the session keeps its own time. Prints tables in Markdown.
"""

import argparse
import asyncio
import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import websockets

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
import hear
from chat_client import Server, servers_of_a_run

RATE_HZ = 24_000
PIECE_S = 0.1
SILENCE = numpy.zeros(int(0.8 * RATE_HZ), numpy.float32)
CLIP_S = 20
MINUTES_MAX = 3


def decoded(file, check=True):
    """Mono samples between -1 and 1. Without a check, a damaged file has none."""
    command = ["ffmpeg", "-v", "error", "-i", str(file), "-ac", "1", "-ar", str(RATE_HZ), "-f", "f32le", "-"]
    return numpy.frombuffer(subprocess.run(command, stdout=subprocess.PIPE, check=check).stdout, numpy.float32)


def at_level(samples, level):
    """With this root of the mean square."""
    power = float(numpy.sqrt(numpy.mean(samples**2)))
    return (samples * (level / power if power else 0)).astype(numpy.float32)


def typing(folder, chance):
    """Twenty seconds at five keys a second, from recordings of single keys."""
    keys = [decoded(file) for file in sorted(folder.glob("*.wav"))]
    sound = numpy.zeros(CLIP_S * RATE_HZ, numpy.float32)
    at = 0
    while at < len(sound):
        key = chance.choice(keys)[: len(sound) - at]
        sound[at : at + len(key)] += key
        at += int(chance.uniform(0.1, 0.3) * RATE_HZ)
    return sound


def cut(sounds):
    """Clips of twenty seconds, up to three minutes. Short sounds are joined."""
    joined = numpy.concatenate(sounds)[: MINUTES_MAX * 60 * RATE_HZ]
    return [joined[at : at + CLIP_S * RATE_HZ] for at in range(0, len(joined), CLIP_S * RATE_HZ)]


def noises(folder, chance):
    """Name, origin, clips."""
    def files(pattern):
        return sorted(file for file in folder.glob(pattern) if file.suffix in (".ogg", ".oga", ".wav"))

    def whole(pattern):
        # A sound of torcs-data is damaged.
        sounds = [decoded(file, check=False) for file in files(pattern)]
        return cut([at_level(sound, 0.1) for sound in sounds if len(sound) > 2_400])

    yield "keyboard", "bucklespring-data 1.4.0, 171 keys", [at_level(typing(folder / "buckle/wav", chance), 0.05) for _ in range(9)]
    yield "music", "frozen-bubble-data 2.212, lincity-ng-data 2.9, torcs-data 1.3.7", cut(
        [at_level(decoded(file)[: 60 * RATE_HZ], 0.1)
         for pattern in ("games/frozen-bubble/snd/*zik*", "games/lincity-ng/music/default/*", "games/torcs/data/music/*")
         for file in files(pattern)])
    yield "engines, tyres, crashes", "torcs-data 1.3.7", whole("games/torcs/data/sound/*")
    yield "town, machines, animals", "lincity-ng-data 2.9", whole("games/lincity-ng/sounds/*")
    yield "desktop sounds", "sound-theme-freedesktop 0.8", whole("sounds/freedesktop/stereo/*")
    hiss = numpy.random.default_rng(1).standard_normal(MINUTES_MAX * 60 * RATE_HZ).astype(numpy.float32)
    yield "white noise, -20 dB", "computed", cut([at_level(hiss, 0.1)])


def recorded(folder):
    for pattern in ("cards/*.wav", "librivox/*.wav"):
        yield from (decoded(file) for file in sorted(folder.glob(pattern)))


async def heard(url, samples):
    """How often speech began, and the words."""
    started, words = 0, []
    async with websockets.connect(f"{url.replace('http', 'ws')}/v1/realtime?intent=transcription", max_size=None) as socket_:
        session = {"type": "transcription", "audio": {"input": {
            "format": {"type": "audio/pcm", "rate": RATE_HZ}, "transcription": {"model": "whisper-1", "language": "en"},
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 500}}}}
        await socket_.send(json.dumps({"type": "session.update", "session": session}))
        sound = numpy.concatenate([SILENCE, samples, SILENCE, SILENCE])
        pcm = (numpy.clip(sound, -1, 1) * 32_767).astype("<i2").tobytes()
        piece = int(PIECE_S * RATE_HZ) * 2

        async def send():
            for at in range(0, len(pcm), piece):
                audio = base64.b64encode(pcm[at : at + piece]).decode()
                await socket_.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
                await asyncio.sleep(PIECE_S / 8)
            # An answer to this shows that all sound before it was heard.
            await socket_.send(json.dumps({"type": "input_audio_buffer.clear"}))

        sending = asyncio.create_task(send())
        is_cleared, open_items = False, set()
        while not is_cleared or open_items:
            event = json.loads(await asyncio.wait_for(socket_.recv(), 120))
            kind = event["type"]
            if kind == "input_audio_buffer.speech_started":
                started += 1
            elif kind == "input_audio_buffer.committed":
                open_items.add(event["item_id"])
            elif kind == "conversation.item.input_audio_transcription.completed":
                open_items.discard(event["item_id"])
                words += event["transcript"].split()
            elif kind == "conversation.item.input_audio_transcription.failed":
                raise RuntimeError(event)
            elif kind == "input_audio_buffer.cleared":
                is_cleared = True
            elif kind == "error":
                raise RuntimeError(event)
        await sending
    return started, words


def with_noise(samples, noise, decibels, chance):
    start = chance.randrange(max(1, len(noise) - len(samples)))
    part = numpy.resize(noise[start:], len(samples))
    level = float(numpy.sqrt(numpy.mean(samples**2))) / 10 ** (decibels / 20)
    return samples + at_level(part, level)


async def measure(hob, args, folder):
    url, chance = f"http://127.0.0.1:{hob.port}", random.Random(1)
    kinds = list(noises(args.noises, chance))
    print("\n| sound without speech | from | seconds | turns begun | a minute | words invented |\n|---|---|---|---|---|---|")
    for name, origin, clips in kinds:
        results = [await heard(url, clip) for clip in clips]
        seconds = sum(len(clip) for clip in clips) / RATE_HZ
        turns, words = sum(started for started, _ in results), sum(len(words) for _, words in results)
        print(f"| {name} | {origin} | {seconds:.0f} | {turns} | {turns * 60 / seconds:.1f} | {words} |", flush=True)
    sentences = [decoded(file) for file, *_ in hear.spoken(hob, folder)]
    speech = {"hob's voices, 48 sentences": sentences, "people, 10 recordings": list(recorded(args.recordings))}
    print("\n| speech | noise | clips | without a turn |\n|---|---|---|---|")
    for name, clips in speech.items():
        for noise, decibels in (("none", None), ("keyboard", 10), ("music", 10), ("white noise, -20 dB", 10), ("white noise, -20 dB", 0)):
            missed = 0
            for clip in clips:
                if decibels is not None:
                    clip = with_noise(clip, next(kind for kind in kinds if kind[0] == noise)[2][0], decibels, chance)
                missed += (await heard(url, clip))[0] == 0
            shown = noise if decibels is None else f"{noise.split(',')[0]}, {decibels} dB"
            print(f"| {name} | {shown} | {len(clips)} | {missed} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--noises", type=pathlib.Path, required=True)
    parser.add_argument("--recordings", type=pathlib.Path, required=True, help="test data of pocketsphinx")
    args = parser.parse_args()
    for model in ("kokoro", "whisper-base", "smart-turn"):
        subprocess.run([os.environ["HOB"], "pull", model], stdout=sys.stderr, check=True)
    # The log of the server is on standard error, so that the tables are all that standard output gets.
    with tempfile.TemporaryDirectory() as folder, servers_of_a_run() as servers:
        servers.append(Server("hob", [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"], sys.stderr))
        servers[0].wait_until("/ready")
        asyncio.run(measure(servers[0], args, folder))


main()
