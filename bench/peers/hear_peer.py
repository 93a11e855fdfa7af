"""faster-whisper behind OpenAI's transcription API, for comparison with hob: one request at a time.

Arguments: port, folder of the weights, threads, beam size. Deliberately absent: any package but faster-whisper,
so that the server adds almost nothing to the library's own time.
"""

import email.parser
import email.policy
import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import faster_whisper

NAME = "whisper-base"
# Bytes of 30 s of 16-bit sound at 16 kHz, which Whisper reads in one go. Pauses of longer sound are left out first.
ONE_PASS_BYTES = 30 * 32_000


class Peer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model, beam, lock = None, 1, threading.Lock()

    def do_GET(self):
        if self.path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "faster-whisper"}]})
        elif self.path == "/version":
            self.answer({"version": faster_whisper.__version__})
        else:
            self.answer({"error": {"message": "not found"}}, 404)

    def do_POST(self):
        length = int(self.headers["content-length"])
        fields = form(self.headers["content-type"], self.rfile.read(length))
        sound = fields["file"]
        with self.lock:
            segments, _ = self.model.transcribe(
                io.BytesIO(sound), language=fields.get("language", b"").decode() or None, beam_size=self.beam,
                vad_filter=len(sound) > ONE_PASS_BYTES,
            )
            if fields.get("stream") == b"true":
                self.stream(segment.text for segment in segments)
            else:
                self.answer({"text": "".join(segment.text for segment in segments).strip()})

    def stream(self, texts):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        whole = ""
        for text in texts:
            whole += text
            self.event({"type": "transcript.text.delta", "delta": text})
        self.event({"type": "transcript.text.done", "text": whole})
        self.wfile.write(b"0\r\n\r\n")

    def event(self, event):
        data = f"data: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def form(content_type, body):
    """The fields of a form, as bytes."""
    head = f"content-type: {content_type}\r\n\r\n".encode()
    parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


def main():
    port, folder, threads, beam = sys.argv[1:]
    Peer.beam = int(beam)
    Peer.model = faster_whisper.WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=int(threads))
    ThreadingHTTPServer(("127.0.0.1", int(port)), Peer).serve_forever()


main()
