"""A pytest plugin for the tests in the source package of openai-agents: their scripted model answers through hob.

The tests replace the model by `ScriptedModel`, which returns the items that a test wrote. Here each of its calls is a real
request to `/v1/responses` of hob. The request goes on to a server in this process, which answers with the items of the test
as a chat completion. So the test gets what hob made of its items. Ids that the tests make up stand for those that hob made.
A test also fails if hob forwards other messages, tools or settings than the SDK asked for.

Environment: HOB_SCRIPTED_URL, HOB_AGENTS_MODEL (an alias), HOB_AGENTS_PORT (where hob looks for its target).
"""

import asyncio
import contextlib
import dataclasses
import http.server
import json
import os
import signal
import threading

import pytest
from agents import FunctionTool
from agents.models.interface import ModelTracing
from agents.models.openai_responses import OpenAIResponsesModel
from agents.testing import ScriptedModel
from openai import AsyncOpenAI, DefaultAsyncHttpx2Client
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from pydantic import BaseModel

# The SDK's tests forbid these later.
GET, STREAM = OpenAIResponsesModel.get_response, OpenAIResponsesModel.stream_response
NEXT = ScriptedModel._next_resolved_step
INPUT_TYPES = {"message", "function_call", "function_call_output"}
# A test may wait for something that comes only if the turn before succeeded.
SECONDS_MAX = 30
# What the server answers next, and the requests that came since the turn began.
REPLY, FORWARDED = [], []


class Upstream(http.server.BaseHTTPRequestHandler):
    """A chat completions server that answers with REPLY."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.send("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        FORWARDED.append(request)
        message, usage = REPLY.pop()
        if not request.get("stream"):
            finish = "tool_calls" if "tool_calls" in message else "stop"
            choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None} | message}
            return self.send("application/json", json.dumps({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice], "usage": usage,
            }))
        calls = message.get("tool_calls", [])
        deltas = [{"content": message["content"]}] if message.get("content") else []
        deltas += [{"tool_calls": [{"index": index} | call]} for index, call in enumerate(calls)]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
        events = [head | {"choices": [chunk]} for chunk in chunks] + [head | {"choices": [], "usage": usage}]
        self.send("text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")

    def send(self, kind, body):
        body = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A test may cancel its run.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Hob:
    """The requests of one test."""

    def __init__(self):
        self.lock = asyncio.Lock()
        # A client belongs to one event loop, and `run_sync` makes its own.
        self.models = {}
        # Ids of the test, and those of hob.
        self.responses, self.conversations = {}, {}
        # What was said before, by hob's id of a response or conversation.
        self.histories = {}
        self.turns = self.requests = 0
        # The SDK, or the test, may catch an exception. So failures are kept for the end of the test.
        self.failures = []

    async def next(self, scripted, call):
        step = await NEXT(scripted, call)
        self.turns += 1
        if not is_possible(step, call):
            return step
        async with self.lock:
            try:
                return await self.ask(step, call)
            except Exception as failure:
                self.failures.append(repr(failure))
                raise

    async def ask(self, step, call):
        loop = asyncio.get_running_loop()
        if loop not in self.models:
            self.models[loop] = OpenAIResponsesModel(os.environ["HOB_AGENTS_MODEL"], client())
        model = self.models[loop]
        REPLY[:] = [(message_of(step.output), usage_of(step.usage))]
        FORWARDED.clear()
        arguments = [getattr(call, name) for name in ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs")]
        named = {
            "previous_response_id": self.responses.get(call.previous_response_id),
            "conversation_id": await self.conversation(model, call.conversation_id), "prompt": None,
        }
        self.requests += 1
        if call.streamed:
            events = [event async for event in STREAM(model, *arguments, ModelTracing.DISABLED, **named)]
            response = events[-1].response
            output, made = response.output, response.id
        else:
            events = None
            response = await GET(model, *arguments, ModelTracing.DISABLED, **named)
            output, made = response.output, response.response_id
        assert [plain(item) for item in output] == [plain(item) for item in step.output], "hob answers with other items than the script's"
        self.compare(call, named, made, output)
        renamed = {item.id: wanted.id for item, wanted in zip(output, step.output)} | {made: step.response_id}
        self.responses[step.response_id] = made
        rename(events or output, renamed)
        return dataclasses.replace(step, stream_events=events) if events else dataclasses.replace(step, output=output)

    def compare(self, call, named, made, output):
        """Notes how the forwarded request differs from the call."""
        before = named["conversation_id"] or named["previous_response_id"]
        said = self.histories.get(before, []) + [part for item in input_of(call) for part in said_in(item)]
        asked = asked_in(call) | {"messages": ([("system", call.system_instructions)] if call.system_instructions else []) + said}
        if len(FORWARDED) != 1:
            self.failures.append(f"hob makes {len(FORWARDED)} requests for one turn")
        for forwarded in map(forwarded_in, FORWARDED):
            differing = [name for name in asked if forwarded[name] != asked[name]]
            self.failures += [f"hob forwards other {name}: {forwarded[name]}, not {asked[name]}" for name in differing]
        answered = [part for item in output for part in said_in(item.model_dump())]
        self.histories[named["conversation_id"] or made] = said + answered

    async def conversation(self, model, name):
        if name is not None and name not in self.conversations:
            self.conversations[name] = (await model._client.conversations.create()).id
        return self.conversations.get(name)


def client():
    url = f"{os.environ['HOB_SCRIPTED_URL']}/v1"
    # No TLS: its certificates take long to read.
    return AsyncOpenAI(base_url=url, api_key="not checked", max_retries=0, http_client=DefaultAsyncHttpx2Client(verify=False))


def is_possible(step, call):
    """Whether hob can answer: the script has only texts and calls of functions, and the request has no hosted tools."""
    texts = [item for item in step.output if isinstance(item, ResponseOutputMessage)]
    calls = [item for item in step.output if isinstance(item, ResponseFunctionToolCall)]
    kinds = [] if isinstance(call.input, str) else [item.get("type", "message") for item in call.input]
    return (
        step.error is None and step.stream_events is None and step.output and [*texts, *calls] == list(step.output) and len(texts) <= 1
        and all(part.type == "output_text" and not part.annotations for item in texts for part in item.content)
        and all(isinstance(tool, FunctionTool) for tool in call.tools) and set(kinds) <= INPUT_TYPES and call.prompt is None
    )


def input_of(call):
    return [{"role": "user", "content": call.input}] if isinstance(call.input, str) else call.input


def said_in(item):
    """The texts, calls and results of an input item, in the form in which those of a chat message are compared."""
    kind = item.get("type", "message")
    if kind == "function_call":
        return [("call", item["call_id"], item["name"], parsed(item["arguments"]))]
    if kind == "function_call_output":
        return [("result", item["call_id"], text_of(item["output"]))]
    return [(item["role"], text_of(item["content"]))]


def parsed(arguments):
    """hob writes JSON without spaces. A script may hold other texts."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def text_of(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def asked_in(call):
    """What a request for a call must have besides the messages."""
    settings = call.model_settings
    tools = [(tool.name, tool.description, tool.params_json_schema) for tool in call.tools]
    tools += [(handoff.tool_name, handoff.tool_description, handoff.input_json_schema) for handoff in call.handoffs]
    schema = call.output_schema
    return {
        "tools": tools, "tool_choice": (settings.tool_choice or "auto") if tools else None,
        "temperature": settings.temperature, "top_p": settings.top_p, "max_tokens": settings.max_tokens,
        "schema": None if schema is None or schema.is_plain_text() else schema.json_schema(),
    }


def forwarded_in(request):
    """The same of a chat completions request."""
    said = []
    for message in request["messages"]:
        if message["role"] == "tool":
            said.append(("result", message["tool_call_id"], message["content"]))
            continue
        said += [(message["role"], message["content"])] if message["content"] is not None else []
        functions = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
        said += [("call", name, function["name"], parsed(function["arguments"])) for name, function in functions]
    # hob sends the beginning of an answer that the model is to continue in this field.
    said += [("assistant", request["response_prefix"])] if "response_prefix" in request else []
    functions = [tool["function"] for tool in request.get("tools", [])]
    choice = request.get("tool_choice")
    return {
        "tools": [(function["name"], function.get("description"), function["parameters"]) for function in functions],
        "tool_choice": choice["function"]["name"] if isinstance(choice, dict) else choice,
        "temperature": request.get("temperature"), "top_p": request.get("top_p"), "max_tokens": request.get("max_tokens"),
        "schema": request["response_format"]["json_schema"]["schema"] if "response_format" in request else None,
        "messages": said,
    }


def message_of(output):
    text = "".join(part.text for item in output if item.type == "message" for part in item.content)
    calls = [
        {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}
        for item in output if item.type == "function_call"
    ]
    return ({"content": text} if text else {}) | ({"tool_calls": calls} if calls else {})


def usage_of(usage):
    return {
        "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": usage.total_tokens,
    }


def plain(item):
    if item.type == "message":
        return "".join(part.text for part in item.content)
    return (item.type, getattr(item, "call_id", None), getattr(item, "name", None), getattr(item, "arguments", None) or "{}")


def rename(value, names):
    """Gives a model, and the models in it, other ids."""
    if isinstance(value, list):
        for part in value:
            rename(part, names)
    elif isinstance(value, BaseModel):
        for field, part in vars(value).items():
            if field not in ("id", "item_id"):
                rename(part, names)
            elif part in names:
                # No response id at all is possible in a script.
                object.__setattr__(value, field, names[part])


@pytest.fixture(autouse=True, scope="session")
def upstream():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["HOB_AGENTS_PORT"])), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    server.shutdown()


@pytest.fixture(autouse=True)
def through_hob(monkeypatch, request):
    hob = Hob()
    monkeypatch.setattr(ScriptedModel, "_next_resolved_step", lambda scripted, call: hob.next(scripted, call))
    yield hob
    request.node.user_properties += [("requests", hob.requests), ("turns", hob.turns)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    def end(*_):
        raise TimeoutError(f"the test did not end within {SECONDS_MAX} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS_MAX)
    try:
        result = yield
    finally:
        signal.alarm(0)
    failures = item.funcargs["through_hob"].failures
    assert not failures, failures[0]
    return result
