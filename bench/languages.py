"""Language detection, transcription and translation by hob and by faster-whisper 1.2.1, on the same weights of Whisper base.

Environment: HOB (the binary), HOB_HOME (a home with the transcription model). The recordings are telephone prompts: one
voice for each language, 8 kHz. The same prompt exists in English, so a translation is compared with that text.
Prints a table in Markdown.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata
import uuid
import urllib.request

import faster_whisper

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from chat_client import Server, servers_of_a_run
from hear import MODEL, weights

LANGUAGES = {"en": "english", "es": "spanish", "fr": "french", "it": "italian", "ru": "russian"}
# Shorter prompts are single words, from which a language can hardly be told.
WORDS_MIN = 6


def texts(prompts, language):
    """The text of each prompt by its name."""
    file = prompts / f"doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt.gz"
    lines = gzip.decompress(file.read_bytes()).decode("utf-8-sig").splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line and not line.startswith(";"))
    # A text in brackets describes a sound without speech.
    return {name.strip(): text.strip() for name, text in pairs if not text.strip().startswith("[")}


def words(text):
    """In lower case, without accents and punctuation: the texts have misspelt accents."""
    plain = unicodedata.normalize("NFD", text.lower())
    return re.findall(r"\w+", "".join(c for c in plain if not unicodedata.combining(c)))


def errors(said, heard):
    """Words that are wrong, missing or added."""
    row = list(range(len(heard) + 1))
    for line, word in enumerate(said, 1):
        diagonal, row[0] = row[0], line
        for column, other in enumerate(heard, 1):
            diagonal, row[column] = row[column], min(diagonal + (word != other), row[column] + 1, row[column - 1] + 1)
    return row[-1]


def shared(said, heard):
    """Words of both texts, whatever their order, as twice their share of all words (an F1 score)."""
    both = sum((collections.Counter(said) & collections.Counter(heard)).values())
    return 2 * both / max(1, len(said) + len(heard))


class Hob:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/v1/audio/"

    def hear(self, file, task):
        boundary = uuid.uuid4().hex
        fields = {"model": MODEL, "response_format": "verbose_json"}
        parts = [f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
                 for name, value in fields.items()]
        head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
        body = b"".join(parts) + head + file.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        path = "translations" if task == "translate" else "transcriptions"
        asked = urllib.request.Request(self.url + path, body, {"content-type": f"multipart/form-data; boundary={boundary}"})
        with urllib.request.urlopen(asked) as answer:
            heard = json.load(answer)
        return heard["language"], heard["text"]


class Peer:
    def __init__(self, folder):
        self.model = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8")

    def hear(self, file, task):
        segments, about = self.model.transcribe(str(file), task=task)
        return LANGUAGES.get(about.language, about.language), "".join(segment.text for segment in segments)


def row(prompts, language, engines, count):
    said, english = texts(prompts, language), texts(prompts, "en")
    folder = next((prompts / "asterisk/sounds").glob(f"{language}_*"))
    files = {name: folder / f"{name}.wav" for name, text in said.items() if len(words(text)) >= WORDS_MIN}
    names = [name for name, file in sorted(files.items()) if file.exists() and name in english][:count]
    cells = [[], [], []]
    for engine in engines:
        detected = wrong = total = 0
        scores = []
        for name in names:
            found, heard = engine.hear(files[name], "transcribe")
            detected += found == LANGUAGES[language]
            wrong += errors(words(said[name]), words(heard))
            total += len(words(said[name]))
            if language != "en":
                scores.append(shared(words(english[name]), words(engine.hear(files[name], "translate")[1])))
        cells[0].append(f"{detected}")
        cells[1].append(f"{100 * wrong / total:.1f}")
        cells[2].append(f"{sum(scores) / len(scores):.2f}" if scores else "")
    cells = [" / ".join(cell).strip(" /") for cell in cells]
    print(f"| {LANGUAGES[language].title()} | {len(names)} | {cells[0]} | {cells[1]} | {cells[2]} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=pathlib.Path, required=True, help="the unpacked folder share")
    parser.add_argument("-n", type=int, default=40, help="recordings of each language")
    args = parser.parse_args()
    subprocess.run([os.environ["HOB"], "pull", MODEL], stdout=sys.stderr, check=True)
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w") as log:
        with servers_of_a_run() as servers:
            server = Server("hob", [os.environ["HOB"], "serve", "--listen", "127.0.0.1:{port}"], log)
            servers.append(server)
            server.wait_until("/health")
            engines = [Hob(server.port), Peer(weights(pathlib.Path(folder)))]
            print("| hob / faster-whisper | recordings | language detected | word errors, % | translation: words shared with the English prompt (F1) |")
            print("|---|---|---|---|---|")
            for language in LANGUAGES:
                row(args.prompts, language, engines, args.n)


if __name__ == "__main__":
    main()
