"""Checks that constrained answers are valid: at temperature 1, with any seed and few tokens.

HOB_TEST_ANSWERS sets the number of answers. 21 are one of each kind with each limit of tokens.
"""

import collections
import concurrent.futures
import json
import os

import jsonschema
import openai

from conftest import MODEL
from schemas import FORMATS, TOOLS, parameters_of

REQUESTS = int(os.environ.get("HOB_TEST_ANSWERS", "21"))
AT_ONCE = 4
# Token limits as multiples of the smallest sufficient number: tight, medium, generous.
BUDGETS = (1, 1.25, 2)


def test_every_constrained_answer_is_valid(client):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda seed: ask(client, seed), range(REQUESTS)))
    wrong = [f"seed {seed}, {kind}: {why}" for seed, (kind, why, _) in enumerate(answers) if why]
    cut = sum(finish == "length" for _, _, finish in answers)
    kinds = collections.Counter(kind for kind, _, _ in answers)
    print(f"\n{REQUESTS - len(wrong)} of {REQUESTS} valid ({dict(kinds)}; {cut} closed at their token limit)")
    assert wrong == []


def ask(client, seed):
    """Returns the kind of request, why its answer is invalid (or None), and the finish reason."""
    kinds = [*FORMATS, "named tool", "any tool"]
    kind = kinds[seed % len(kinds)]
    factor = BUDGETS[seed // len(kinds) % len(BUDGETS)]
    settings = {"model": MODEL, "temperature": 1, "seed": seed}
    try:
        check = as_tool if kind.endswith("tool") else as_format
        return kind, None, check(client, kind, factor, settings)
    except (jsonschema.ValidationError, openai.OpenAIError, ValueError, AssertionError) as failure:
        return kind, f"{type(failure).__name__}: {failure}".splitlines()[0], None


def as_format(client, kind, factor, settings):
    schema, wish, least = FORMATS[kind]
    budget = int(least * factor)
    answer = client.chat.completions.create(
        messages=[{"role": "user", "content": wish}],
        response_format={"type": "json_schema", "json_schema": {"name": kind, "schema": schema, "strict": True}},
        max_completion_tokens=budget,
        **settings,
    )
    assert answer.usage.completion_tokens <= budget, "the answer has more tokens than its limit"
    validate(json.loads(answer.choices[0].message.content), schema)
    return answer.choices[0].finish_reason


def as_tool(client, kind, factor, settings):
    named = {"type": "function", "function": {"name": "weather_of"}}
    answer = client.chat.completions.create(
        messages=[{"role": "user", "content": "How will the weather be in Porto this week?"}],
        tools=TOOLS,
        tool_choice=named if kind == "named tool" else "required",
        max_completion_tokens=int(64 * factor),
        **settings,
    )
    calls = answer.choices[0].message.tool_calls
    assert calls, f"no tool call, finish reason {answer.choices[0].finish_reason}"
    for call in calls:
        assert kind == "any tool" or call.function.name == "weather_of", "the wrong tool was called"
        validate(json.loads(call.function.arguments), parameters_of(call.function.name))
    return answer.choices[0].finish_reason


def validate(value, schema):
    jsonschema.validate(value, schema, format_checker=jsonschema.FormatChecker())
