"""A voice pipeline of other projects' parts, put together as is usual today.

Silero VAD hears the end of a turn after a fixed silence, faster-whisper transcribes the turn, llama-server streams an
answer, and its first sentence goes to fastkokoro, whose sound is streamed. Deliberately absent: any framework, so that
nothing is added to the time of the parts.
"""

import http.client
import json
import re
import threading
import time

import faster_whisper
import numpy
import onnxruntime

from voice_sound import STAGES, Audible, Turn

RATE_HZ = 16_000
FRAME = 512
FRAME_MS = 32
CONTEXT = 64
SPEECH = 0.5
SILENCE = 0.35
SENTENCE = re.compile(r"[.!?][\"')]*\s")


class Ears:
    """Silero VAD for sound that arrives frame by frame."""

    def __init__(self, detector):
        self.detector = detector
        self.state = numpy.zeros((2, 1, 128), "float32")
        self.context = numpy.zeros(CONTEXT, "float32")

    def probability(self, frame):
        heard = numpy.concatenate([self.context, frame])[None]
        inputs = {"input": heard, "state": self.state, "sr": numpy.array(RATE_HZ, "int64")}
        probability, self.state = self.detector.run(None, inputs)
        self.context = frame[-CONTEXT:]
        return float(probability.reshape(-1)[0])


class Pipeline:
    def __init__(self, chat_port, speech_port, settings):
        """`settings`: folder of the weights, file of the detector, threads, beam size, silence in ms, instructions, voice."""
        self.chat_port, self.speech_port, self.settings = chat_port, speech_port, settings
        self.whisper = faster_whisper.WhisperModel(
            settings["weights"], device="cpu", compute_type="int8", cpu_threads=settings["threads"])
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        self.detector = onnxruntime.InferenceSession(settings["detector"], options, providers=["CPUExecutionProvider"])

    def begin(self):
        return PeerTurn(self)

    def transcribe(self, sound):
        segments, _ = self.whisper.transcribe(
            sound, language="en", beam_size=self.settings["beam"], without_timestamps=True)
        return "".join(segment.text for segment in segments).strip()


class PeerTurn(Turn):
    def __init__(self, pipeline):
        super().__init__()
        self.pipeline, self.ears = pipeline, Ears(pipeline.detector)
        self.unheard, self.frames = numpy.zeros(0, "float32"), []
        self.is_speaking, self.silent = False, 0

    def hear(self, encoded, floats):
        self.unheard = numpy.concatenate([self.unheard, floats])
        while len(self.unheard) >= FRAME and not self.thread:
            frame, self.unheard = self.unheard[:FRAME], self.unheard[FRAME:]
            self.frames.append(frame)
            probability = self.ears.probability(frame)
            if probability >= SPEECH:
                self.is_speaking, self.silent = True, 0
            elif self.is_speaking and (self.silent or probability < SILENCE):
                self.silent += 1
            if self.silent * FRAME_MS >= self.pipeline.settings["silence_ms"]:
                turn_end = time.perf_counter()
                self.thread = threading.Thread(target=self.listen, args=(lambda: self.answer(turn_end),))
                self.thread.start()

    def answer(self, turn_end):
        if turn_end < self.question_end:
            raise RuntimeError("cut in")
        text = self.pipeline.transcribe(numpy.concatenate(self.frames))
        if not text:
            raise RuntimeError("nothing was understood")
        transcribed = time.perf_counter()
        # The connection stays open: the model goes on writing, as it does when the rest is spoken later.
        with Request(self.pipeline.chat_port, "/v1/chat/completions", self.question(text)) as chat:
            sentence, first_text, sentence_end = first_sentence(chat)
            self.audible = self.speak(sentence)
        marks = [self.question_end, turn_end, transcribed, first_text, sentence_end, self.audible, self.audible]
        self.stages = {name: (after - before) * 1000 for name, before, after in zip(STAGES, marks, marks[1:])}

    def question(self, text):
        messages = [{"role": "system", "content": self.pipeline.settings["instructions"]},
                    {"role": "user", "content": text}]
        return {"messages": messages, "stream": True}

    def speak(self, sentence):
        body = {"model": "kokoro", "input": sentence, "voice": self.pipeline.settings["voice"],
                "response_format": "pcm", "stream": True}
        with Request(self.pipeline.speech_port, "/v1/audio/speech", body) as speech:
            audible = Audible()
            while piece := speech.read1(65_536):
                if found := audible.hear(time.perf_counter(), piece):
                    return found
        raise RuntimeError("the answer is silent")


class Request:
    """A streamed answer. Leaving it closes the connection, which ends the work behind it."""

    def __init__(self, port, path, body):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.path, self.body = path, json.dumps(body)

    def __enter__(self):
        self.connection.request("POST", self.path, self.body, {"content-type": "application/json"})
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            raise RuntimeError(f"{self.path}: {self.response.status}: {self.response.read()[:300]!r}")
        return self.response

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()


def first_sentence(lines):
    """The first sentence of a streamed answer, when its first text came, and when it was whole."""
    text, first_text = "", None
    for line in lines:
        now = time.perf_counter()
        if not line.startswith(b"data: {"):
            continue
        choices = json.loads(line[6:]).get("choices") or [{}]
        if content := choices[0].get("delta", {}).get("content"):
            first_text = first_text or now
            text = (text + content).lstrip()
            if end := SENTENCE.search(text):
                return text[: end.end()], first_text, time.perf_counter()
    if not text:
        raise RuntimeError("the answer is empty")
    return text, first_text, time.perf_counter()
