"""A client of hob's realtime API, with a WebSocket of the standard library: one session for each question."""

import base64
import contextlib
import json
import socket
import struct
import threading
import time

from voice_sound import RATE_HZ, STAGES, Audible, Turn

EVENT_S_MAX = 120
TEXT, CLOSE = 1, 8


class Socket:
    """Text messages only. hob sends no message in parts, and needs no answer to a ping within one turn."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), EVENT_S_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        status = self.reader.readline()
        if b" 101 " not in status:
            raise RuntimeError(f"hob refused the session: {status.decode().strip()}")
        while self.reader.readline().strip():
            pass

    def send(self, event):
        """With a mask of zeros, which changes nothing."""
        data = json.dumps(event).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
        self.socket.sendall(bytes([0x80 | TEXT]) + length + bytes(4) + data)

    def read(self):
        """When an event had arrived, and the event."""
        while True:
            kind, length = (byte & 0x7F for byte in self.exactly(2))
            if length > 125:
                length = int.from_bytes(self.exactly(2 if length == 126 else 8), "big")
            data, stamp = self.exactly(length), time.perf_counter()
            if kind == CLOSE:
                raise RuntimeError(f"hob closed the session: {data[2:].decode()}")
            if kind == TEXT:
                return stamp, json.loads(data)

    def exactly(self, count):
        data = self.reader.read(count)
        if len(data) < count:
            raise RuntimeError("the connection to hob broke")
        return data

    def leave(self):
        """Ends a read that waits, too."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Hob:
    def __init__(self, port, settings):
        """`settings`: end of turn as hob names it, instructions and voice."""
        sound = {"type": "audio/pcm", "rate": RATE_HZ}
        heard = {"format": sound, "transcription": {"model": "whisper-1", "language": "en"},
                 "turn_detection": settings["turn_detection"]}
        self.port, self.session = port, {
            "type": "realtime", "instructions": settings["instructions"], "include": ["hob.turn_stages"],
            "audio": {"input": heard, "output": {"format": sound, "voice": settings["voice"]}}}

    def begin(self):
        return HobTurn(self.port, self.session)


class HobTurn(Turn):
    def __init__(self, port, session):
        super().__init__()
        self.socket = Socket(port, "/v1/realtime?model=smollm2")
        self.until("session.created")
        self.socket.send({"type": "session.update", "session": session})
        self.until("session.updated")
        self.thread = threading.Thread(target=self.listen, args=(self.answer,))

    def until(self, wanted):
        while (event := self.socket.read()[1])["type"] != wanted:
            if event["type"] == "error":
                raise RuntimeError(f"hob: {event['error']['message']}")

    def hear(self, encoded, floats):
        # The end of the question is known by now.
        if not self.thread.ident:
            self.thread.start()
        # When the connection breaks, the listening thread says why.
        with contextlib.suppress(OSError):
            self.socket.send({"type": "input_audio_buffer.append", "audio": encoded})

    def end(self):
        self.socket.leave()
        super().end()

    def answer(self):
        sound, parts = Audible(), None
        while self.audible is None or parts is None:
            stamp, event = self.socket.read()
            kind = event["type"]
            if kind == "input_audio_buffer.speech_stopped" and stamp < self.question_end:
                raise RuntimeError("cut in")
            if kind == "response.output_audio.delta" and self.audible is None:
                self.audible = sound.hear(stamp, base64.b64decode(event["delta"]))
            elif kind == "hob.turn_stages":
                parts = event["stages_ms"]
            elif kind == "error" or kind == "response.done" and self.audible is None:
                raise RuntimeError(f"hob: {event.get('error') or event['response'].get('status_details')}")
        self.stages = {name: parts[name] for name in STAGES}
        # hob takes the end of speech from its detector. The true end is known here.
        self.stages["endpoint"] += self.whole_ms() - sum(self.stages.values())
