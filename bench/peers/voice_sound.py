"""Spoken questions whose end is known, said at the pace of a microphone, and the first audible sample of an answer.

The times mean the same as those of `hob bench voice`: from the last sample of the question above −40 dB to the first
sample of the answer that is louder for 50 ms.
"""

import base64
import itertools
import threading
import time

import numpy

RATE_HZ = 24_000
PIECE_S = 0.02
PIECE = int(RATE_HZ * PIECE_S)
LEAD_S = 0.3
ANSWER_S_MAX = 30
# −40 dB of 16 bits.
LOUD = 328
FRAME = RATE_HZ // 100
LOUD_FRAMES = 5
STAGES = ("endpoint", "stt", "llm_ttfat", "sentence", "tts_ttfa", "transport")


class Question:
    """Sound of 24 kHz in pieces of 20 ms: as a client of the realtime API sends it, and as floats of 16 kHz."""

    def __init__(self, samples):
        samples = numpy.concatenate([numpy.zeros(int(LEAD_S * RATE_HZ), "<i2"), samples])
        samples = numpy.pad(samples, (0, -len(samples) % PIECE)).astype("<i2")
        self.end_s = (int(numpy.nonzero(numpy.abs(samples.astype(int)) > LOUD)[0][-1]) + 1) / RATE_HZ
        count = len(samples) * 2 // 3
        # What lies above 8 kHz is cut off.
        spectrum = numpy.fft.rfft(samples / 32_768)[: count // 2 + 1]
        self.floats = (numpy.fft.irfft(spectrum, count) * (2 / 3)).astype("float32").reshape(-1, PIECE * 2 // 3)
        self.encoded = [base64.b64encode(piece).decode() for piece in samples.reshape(-1, PIECE)]

    def piece(self, number):
        """As text for the realtime API, and as floats. After the question there is silence."""
        if number < len(self.encoded):
            return self.encoded[number], self.floats[number]
        return SILENCE


SILENCE = base64.b64encode(bytes(2 * PIECE)).decode(), numpy.zeros(PIECE * 2 // 3, "float32")


class Audible:
    """When the first audible sample can be played, if sound is played from its arrival on."""

    def __init__(self):
        self.began, self.sound = None, b""

    def hear(self, stamp, sound):
        self.began = self.began or stamp
        self.sound += sound
        frames = numpy.frombuffer(self.sound[: len(self.sound) // (2 * FRAME) * 2 * FRAME], "<i2")
        loud = numpy.sqrt((frames.reshape(-1, FRAME).astype(float) ** 2).mean(axis=1)) > LOUD
        for at in range(len(loud) - LOUD_FRAMES + 1):
            if loud[at : at + LOUD_FRAMES].all():
                return self.began + at * FRAME / RATE_HZ
        return None


class Turn:
    """One question and its answer: when what happened, and why there is no answer."""

    def __init__(self):
        self.question_end, self.audible, self.failure = None, None, None
        self.stages, self.over, self.thread = {}, threading.Event(), None

    def hear(self, encoded, floats):
        """A piece of sound from the microphone."""
        raise NotImplementedError

    def listen(self, answer):
        """Runs on a thread of its own until the answer is heard."""
        try:
            answer()
        except Exception as failure:
            self.failure = self.failure or str(failure) or repr(failure)
        finally:
            self.over.set()

    def end(self):
        """Waits for the thread that listens."""
        if self.thread and self.thread.ident:
            self.thread.join()

    def whole_ms(self):
        return (self.audible - self.question_end) * 1000


def say(question, turn):
    """Says the question, and then nothing, until the turn is over."""
    began = time.perf_counter()
    turn.question_end = began + question.end_s
    for number in itertools.count():
        if turn.over.wait(max(0.0, began + (number + 1) * PIECE_S - time.perf_counter())):
            return turn
        if number * PIECE_S > question.end_s + ANSWER_S_MAX:
            turn.failure = "no answer in time"
            return turn
        turn.hear(*question.piece(number))
