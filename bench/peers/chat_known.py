"""Answers that are partly known before they are given: JSON of a schema, a tool call, a copy, an edit; and free text, which is not.

hob with its defaults next to llama-server without guesses and with each of its ways to guess from the text. The row compares
hob with the best of them, which the row below names. Each prompt is new, and its cache is filled first, so that the figures
are those of the answer alone.
"""

import statistics

from chat_client import EndedEarly

ANSWER_TOKENS = 128
# A model that ends its answer earlier is asked something else.
ANSWER_TOKENS_MIN = {"json": 24, "call": 12, "copy": 48, "edit": 48, "free": 64}
# Short guesses: on a CPU each guessed token has its price, and llama-server's default is 48 of them.
PEER_FLAGS = {
    "ngram-simple": [
        "--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "4", "--spec-ngram-simple-size-m", "8"],
    "ngram-map-k": [
        "--spec-type", "ngram-map-k", "--spec-ngram-map-k-size-n", "4", "--spec-ngram-map-k-size-m", "8"],
}
# What hob must reach, in times of the best figure of llama-server.
BOUNDS = {"json": 1.5, "call": 1.5, "copy": 1.5, "edit": 1.5, "free": 1.0}

NAMES = ("Ada", "Bruno", "Clara", "Daniel", "Elena", "Felix", "Greta", "Hugo")
PLACES = ("harbour", "castle", "forest", "desert", "village", "island", "market", "mountain")
THINGS = ("lantern", "letter", "clock", "violin", "map", "boat", "mirror", "key")
SENTENCES = (
    "{name} carried the {thing} from the {place} to the old house on the hill.",
    "On the way to the {place}, {name} found a {thing} that had been lost for {number} years.",
    "The people of the {place} paid {number} coins for the {thing} of {name}.",
    "{name} wrote down how the {thing} came to the {place} in the year {number}.",
)
PERSON = {
    "type": "object",
    "additionalProperties": False,
    "required": ["first_name", "age_in_years", "place_of_birth", "is_married", "favourite_things"],
    "properties": {
        "first_name": {"type": "string", "maxLength": 20},
        "age_in_years": {"type": "integer", "minimum": 1, "maximum": 99},
        "place_of_birth": {"type": "string", "maxLength": 20},
        "is_married": {"type": "boolean"},
        "favourite_things": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string", "maxLength": 20}},
    },
}
PEOPLE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["people"],
    "properties": {"people": {"type": "array", "minItems": 2, "maxItems": 2, "items": PERSON}},
}
TRIP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["traveller_name", "destination", "number_of_days", "means_of_transport"],
    "properties": {
        "traveller_name": {"type": "string", "maxLength": 20},
        "destination": {"type": "string", "maxLength": 20},
        "number_of_days": {"type": "integer", "minimum": 1, "maximum": 99},
        "means_of_transport": {"enum": ["train", "ferry", "bicycle", "aeroplane"]},
    },
}


def measure(bench, name):
    """Rounds over hob and all ways of llama-server, in an order that turns round each time."""
    servers = {"hob": bench.hob, **bench.known_peers}
    figures, guesses = {way: [] for way in servers}, {way: [] for way in servers}
    for repetition in range(bench.n + 1):
        order = list(servers) if repetition % 2 else list(servers)[::-1]
        answers = asked(bench, name, [(way, servers[way]) for way in order])
        if repetition:
            for way, answer in answers.items():
                figures[way].append(answer.whole_per_s())
                guesses[way].append(answer.guesses())
    ways = {way: runs for way, runs in figures.items() if way != "hob"}
    best = max(ways, key=lambda way: statistics.median(ways[way]))
    runs = {"hob": figures["hob"], "llama-server": figures[best]}
    bench.report.add(f"{TITLES[name]}, whole answer", "tokens/s", runs, "at least", BOUNDS[name])
    bench.report.say(f"{TITLES[name]}, llama-server by its ways to guess: " + ", ".join(
        f"{way or 'none'} {statistics.median(runs):.0f} tokens/s" for way, runs in ways.items()) + ".")
    bench.report.say(f"{TITLES[name]}, guessed tokens that were right, by server: " + ", ".join(
        "{} {:.0f} of {:.0f}, in answers of {:.0f} tokens".format(way or "none", right, checked, tokens)
        for way, (tokens, checked, right) in medians(guesses)) + ".")


def medians(runs_by_way):
    """Medians of each column of the runs, by way."""
    return [(way, [statistics.median(column) for column in zip(*runs)]) for way, runs in runs_by_way.items()]


def asked(bench, name, servers):
    """The answer of each server to one new request."""
    for _ in range(10):
        messages, more = WORKLOADS[name](bench.prompts.random)
        try:
            return {way: warm_answer(server, messages, more, name) for way, server in servers}
        except EndedEarly:
            bench.redrawn += 1
    raise RuntimeError(f"{name}: ten requests in a row whose answers were too short")


def warm_answer(server, messages, more, name):
    # The first time, the server reads the prompt and compiles the schema.
    server.ask(messages, ANSWER_TOKENS, more)
    answer = server.ask(messages, ANSWER_TOKENS, more)
    if answer.tokens < ANSWER_TOKENS_MIN[name]:
        raise EndedEarly(f"{server.name}: {answer.tokens} tokens")
    return answer


def story(draw, sentences):
    return " ".join(
        draw.choice(SENTENCES).format(
            name=draw.choice(NAMES), place=draw.choice(PLACES), thing=draw.choice(THINGS), number=draw.randrange(100, 2000))
        for _ in range(sentences))


def said(text):
    return [{"role": "user", "content": text}]


def json_of_a_schema(draw):
    schema = {"type": "json_schema", "json_schema": {"name": "people", "strict": True, "schema": PEOPLE}}
    return said(f"Describe two people of this story as JSON. {story(draw, 3)}"), {"response_format": schema}


def tool_call(draw):
    tool = {"type": "function", "function": {"name": "book_a_trip", "description": "Books a trip.", "parameters": TRIP}}
    wish = f"Book a trip to the {draw.choice(PLACES)} for {draw.choice(NAMES)} of {draw.randrange(2, 30)} days."
    return said(wish), {"tools": [tool], "tool_choice": "required"}


def copy(draw):
    return said(f"Repeat this text word by word, and write nothing else:\n\n{story(draw, 8)}"), {}


def edit(draw):
    ask = f"Write this text again, but with the name Oscar instead of {draw.choice(NAMES)}. Change nothing else:"
    return said(f"{ask}\n\n{story(draw, 8)}"), {}


def free_text(draw):
    return said(
        f"Write a long story about {draw.choice(NAMES)}, a {draw.choice(THINGS)} and a {draw.choice(PLACES)} "
        f"in the year {draw.randrange(1000, 3000)}."), {}


WORKLOADS = {"json": json_of_a_schema, "call": tool_call, "copy": copy, "edit": edit, "free": free_text}
TITLES = {
    "json": "JSON of a schema", "call": "tool call", "copy": "copy of a text", "edit": "edit of a text", "free": "free text",
}
