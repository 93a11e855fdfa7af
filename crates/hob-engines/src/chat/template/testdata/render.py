"""Writes goldens.json: the cases as Python's Jinja2 renders them, set up as transformers sets it up."""

import json
import sys
from datetime import datetime
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = Path(__file__).parent
NOW = datetime(2026, 3, 5, 14, 7, 9)

PLAIN = ["plain", "system", "turns", "neighbours", "unicode", "thinking"]
TOOLS = ["tools", "calls", "last-is-result"]
# Each template's tokens, and the cases that it is asked for as it stands. Left out is what hob
# changes on purpose: tools where the template knows none, and no thinking where it has no switch.
TEMPLATES = {
    "smollm2": ("<|im_start|>", "<|im_end|>", [*PLAIN, "no-thinking"]),
    "qwen3": ("", "<|im_end|>", [*PLAIN, "no-thinking", *TOOLS]),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", [*PLAIN, "no-thinking", *TOOLS]),
    "gemma": ("<bos>", "<eos>", [*PLAIN, "no-thinking"]),
    "mistral-nemo": ("<s>", "</s>", [*PLAIN, "no-thinking", *TOOLS]),
    "deepseek-r1": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", PLAIN),
}


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, case, messages, bos, eos):
    tools = json.loads((HERE / "tools.json").read_text("utf-8"))
    variables = {}
    if effort := case.get("thinking"):
        thinks = effort != "none"
        variables = {"enable_thinking": thinks, "thinking": thinks, "reasoning_effort": effort}
    return environment().from_string(source).render(
        messages=messages,
        tools=[tools[name] for name in case.get("tools", [])] or None,
        documents=None,
        bos_token=bos,
        eos_token=eos,
        add_generation_prompt=True,
        date_string=NOW.strftime("%d %b %Y"),
        **variables,
    )


def golden(name, case, bos, eos):
    source = (HERE / "templates" / f"{name}.jinja").read_text("utf-8")
    try:
        return render(source, case, case["messages"], bos, eos)
    except jinja2.exceptions.TemplateError:
        system, *rest = when_refused = case["when_refused"]
        try:
            return render(source, case, when_refused, bos, eos)
        except jinja2.exceptions.TemplateError:
            # Both refusals at once: no system role, and roles that do not alternate.
            first = {"role": "user", "content": f"{system['content']}\n\n{rest[0]['content']}"}
            return render(source, case, [first, *rest[1:]], bos, eos)


def main():
    cases = {case["name"]: case for case in json.loads((HERE / "cases.json").read_text("utf-8"))}
    goldens = {
        name: {
            "bos": bos,
            "eos": eos,
            "texts": {wanted: golden(name, cases[wanted], bos, eos) for wanted in wanted_cases},
        }
        for name, (bos, eos, wanted_cases) in TEMPLATES.items()
    }
    json.dump(goldens, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
