// Tests the official JavaScript client with the real small model: streams, tools, schemas, errors.
// Environment: HOB_URL. Does not repeat what test_openai.py already checks of the wire format.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const model = "smollm2";
const client = new OpenAI({ baseURL: `${process.env.HOB_URL}/v1`, apiKey: "none", maxRetries: 0, timeout: 180_000 });
const greeting = [{ role: "user", content: "Say hello to the harbour master." }];
const wish = [{ role: "user", content: "How will the weather be in Porto this week?" }];
// The texts are short, because the client does not parse an answer that reached its token limit.
const Weather = z.object({ city: z.string().max(24), unit: z.enum(["celsius", "fahrenheit"]) }).strict();
const Person = z.object({ name: z.string().max(24), mood: z.enum(["glad", "calm", "cross"]) }).strict();
const tool = zodFunction({ name: "weather_of", description: "The forecast of a city.", parameters: Weather });
// Replaces Array.fromAsync, which Node 20 does not have.
const collect = async (items) => {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
};
const named = { type: "function", function: { name: "weather_of" } };

test("an answer that is not streamed is complete", async () => {
  const answer = await client.chat.completions.create({ model, messages: greeting, max_tokens: 24 });
  assert.equal(answer.object, "chat.completion");
  assert.ok(answer.choices[0].message.content.trim());
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
});

test("a stream ends with its usage", async () => {
  const stream = await client.chat.completions.create({
    model, messages: greeting, max_tokens: 24, stream: true, stream_options: { include_usage: true },
  });
  const chunks = await collect(stream);
  const last = chunks.pop();
  assert.ok(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join("").trim());
  assert.match(chunks.at(-1).choices[0].finish_reason, /^(stop|length)$/);
  assert.deepEqual(last.choices, []);
  assert.ok(last.usage.completion_tokens > 0);
});

test("the stream helper returns the same answer as its events", async () => {
  const stream = client.chat.completions.stream({ model, messages: greeting, max_tokens: 24 });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  assert.equal(await stream.finalContent(), text);
});

for (const choice of ["required", named]) {
  test(`a required tool call is made: ${choice === named ? "named" : choice}`, async () => {
    const answer = await client.chat.completions.parse({
      model, messages: wish, tools: [tool], tool_choice: choice, max_tokens: 128,
    });
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "weather_of");
    Weather.parse(call.function.parsed_arguments);
  });
}

test("the pieces of a streamed call form a valid call", async () => {
  const stream = client.chat.completions.stream({
    model, messages: wish, tools: [tool], tool_choice: named, max_tokens: 128,
  });
  const [call] = (await stream.finalChatCompletion()).choices[0].message.tool_calls;
  assert.ok(call.id);
  Weather.parse(JSON.parse(call.function.arguments));
});

test("the tool runner runs the tool and returns an answer", async () => {
  let asked;
  const run = (city) => ((asked = city), "rain");
  const tools = [{ ...tool, function: { ...tool.function, parse: JSON.parse, function: run } }];
  const runner = client.chat.completions.runTools({
    model, messages: wish, tools, tool_choice: named, max_tokens: 128, stream: false,
  });
  await runner.done();
  Weather.parse(asked);
});

test("a tool with a record is called, and what is not enforced is named", async () => {
  // Vercel's AI SDK sends a record as `propertyNames`. No grammar enforces a list of names.
  const Rain = z.object({ rain: z.partialRecord(z.enum(["mon", "tue"]), z.number()) });
  const parameters = z.toJSONSchema(Rain);
  assert.ok(JSON.stringify(parameters).includes("propertyNames"));
  const tools = [{ type: "function", function: { name: "rain_of", description: "Notes rain.", parameters } }];
  const body = { model, messages: wish, tools, tool_choice: "required", max_tokens: 128 };
  const { data, response } = await client.chat.completions.create(body).withResponse();
  assert.equal(response.headers.get("x-hob-ignored"), "tools.rain_of.propertyNames");
  for (const call of data.choices[0].message.tool_calls) JSON.parse(call.function.arguments);
});

test("a zod schema is parsed, whole and from a stream", async () => {
  const body = {
    model, messages: [{ role: "user", content: "Describe a sailor." }], max_tokens: 96,
    response_format: zodResponseFormat(Person, "person"),
  };
  Person.parse((await client.chat.completions.parse(body)).choices[0].message.parsed);
  Person.parse((await client.chat.completions.stream(body).finalChatCompletion()).choices[0].message.parsed);
});

test("vectors are the same in both formats", async () => {
  const input = ["A boat in the harbour.", "The tax return is late."];
  const coded = await client.embeddings.create({ model, input });
  const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
  for (const [i, { embedding }] of coded.data.entries()) {
    assert.equal(embedding.length, plain.data[i].embedding.length);
    for (const [k, value] of embedding.entries()) assert.ok(Math.abs(value - plain.data[i].embedding[k]) < 1e-4);
  }
});

test("models are listed and found", async () => {
  const names = (await collect(client.models.list())).map(({ id }) => id);
  assert.ok(names.includes(model), `${names}`);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test("errors are the right exceptions", async () => {
  const ask = (body) => client.chat.completions.create({ model, messages: greeting, ...body });
  await assert.rejects(ask({ model: "gpt-unknown" }), (error) => error instanceof NotFoundError && error.code === "model_not_found");
  await assert.rejects(ask({ messages: [] }), BadRequestError);
  await assert.rejects(ask({ temperature: "hot", stream: true }), BadRequestError);
});

test("an aborted stream ends, and the next answer comes soon", async () => {
  // Measures how long a token takes on this machine at this moment.
  const began = performance.now();
  const { usage } = await client.chat.completions.create({ model, messages: greeting, max_tokens: 64, temperature: 0 });
  const tokenMs = (performance.now() - began) / usage.completion_tokens;
  // At temperature 0 the model generates up to its limit, unless the client stops it.
  const long = { model, messages: wish, max_tokens: 1500, temperature: 0, stream: true };
  for (let turn = 0; turn < 8; turn += 1) {
    const stream = await client.chat.completions.create(long);
    let chunks = 0;
    for await (const _ of stream) if ((chunks += 1) === 3) stream.controller.abort();
  }
  const leaving = new AbortController();
  const whole = client.chat.completions.create({ ...long, stream: false }, { signal: leaving.signal });
  setTimeout(() => leaving.abort(), 50);
  await assert.rejects(whole, APIUserAbortError);
  const started = performance.now();
  await client.chat.completions.create({ model, messages: greeting, max_tokens: 4 });
  // If an aborted stream continued, this request would wait for all of its tokens.
  assert.ok(performance.now() - started < (long.max_tokens / 2) * tokenMs);
});
