// Tests a new installation of Open WebUI with hob: what a user does in the first five minutes.
// The answers come from a small real model, so the tests check no words.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ANSWER_MS, LIMIT, Stage, until } from "./stage.mjs";

const stage = new Stage();

before(async () => {
  await stage.open({
    files: { "hob.toml": '[chat]\nmodel = "smollm2"\n' },
    models: ["smollm2", "kokoro"],
    // One round only: the last test forces a tool call in every answer.
    environment: { CHAT_RESPONSE_MAX_TOOL_CALL_ITERATIONS: "1" },
  });
}, LIMIT);

after(() => stage.close(), LIMIT);

test("the first visit ends in a chat with the chat model", LIMIT, async () => {
  await stage.signUp();
  await stage.page.waitForSelector("[aria-label='Selected model: smollm2']");
});

test("an answer is shown while it is generated", LIMIT, async () => {
  const shown = await stage.ask("Tell me about the sea.");
  const grew = shown.filter((text, at) => at > 0 && text.length > shown[at - 1].length && text.startsWith(shown[at - 1].slice(0, 8)));
  assert.ok(grew.length >= 3, `the answer grew ${grew.length} times: ${JSON.stringify(shown).slice(0, 400)}`);
});

test("the chat gets a title", LIMIT, async () => {
  await until(async () => !/^(New Chat|Open WebUI)\b/.test(await stage.page.title()), ANSWER_MS);
  // Open WebUI requests a title, follow-up questions and tags. All of these requests must succeed.
  const refused = (await stage.hob("/metrics")).split("\n").filter((line) => /^hob_requests_total\{route="\/(chat|audio).*status="[45]/.test(line));
  assert.deepEqual(refused, []);
});

test("an answer is read aloud", LIMIT, async () => {
  const { page } = stage;
  await (await page.waitForSelector("[aria-label='Read Aloud']")).click();
  const first = await until(() => stage.speech[0]);
  assert.equal(first.status(), 200);
  assert.match(first.headers()["content-type"], /^audio\//);
  assert.ok(Number(first.headers()["content-length"]) > 2_000, JSON.stringify(first.headers()));
});

test("hob's voices are listed", LIMIT, async () => {
  const voices = await stage.fetched("/api/v1/audio/voices");
  const ids = voices.voices.map(({ id }) => id);
  assert.ok(ids.includes("af_heart") && ids.length > 20, ids.join(" "));
});

test("a tool is called and its result is shown", LIMIT, async () => {
  const { page } = stage;
  // A model of 135 million parameters does not call a tool on its own. All other settings are Open WebUI's defaults.
  const tool_choice = '{"type": "function", "function": {"name": "get_current_timestamp"}}';
  await stage.fetched("/api/v1/users/user/settings/update", { ui: { params: { custom_params: { tool_choice } } } });
  await page.goto(stage.url);
  await page.waitForSelector("[aria-label='Selected model: smollm2']");
  await stage.ask("What time is it?", () => document.body.innerText.includes("View Result from get_current_timestamp"));
});
