// Tests a new installation of Open WebUI with hob: what a user does in the first five minutes.
// Uses Open WebUI's default settings, except hob's address and settings that keep its traffic on this machine.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { launch } from "../../browser/browsers.mjs";

// Time limits that end a hanging test. A busy machine needs minutes to read 7,000 tokens.
const START_MS = 300_000;
const ANSWER_MS = 1_800_000;
const LIMIT = { timeout: ANSWER_MS + START_MS };

const VIEW = { width: 1200, height: 900 };
const ACCOUNT = { name: "Tester", email: "tester@example.com", password: "a password of this test" };
const ANSWER = "[id^=response-content-container]";

const stage = { processes: [], speech: [] };

before(async () => {
  stage.folder = await mkdtemp(path.join(os.tmpdir(), "open-webui-"));
  const [hob, webui] = [await freePort(), await freePort()];
  const config = path.join(stage.folder, "hob.toml");
  await writeFile(config, '[chat]\nmodel = "smollm2"\n');
  stage.hob = `http://127.0.0.1:${hob}`;
  stage.url = `http://127.0.0.1:${webui}`;
  start("hob", process.env.HOB, ["serve", "--config", config, "--listen", `127.0.0.1:${hob}`], {});
  await answers(`${stage.hob}/ready`);
  start("open-webui", process.env.OPEN_WEBUI, ["serve", "--host", "127.0.0.1", "--port", String(webui)], {
    DATA_DIR: path.join(stage.folder, "data"),
    WEBUI_SECRET_KEY: "of this test",
    OPENAI_API_BASE_URL: `${stage.hob}/v1`,
    OPENAI_API_KEY: "none",
    ENABLE_OLLAMA_API: "false",
    AUDIO_TTS_ENGINE: "openai",
    AUDIO_TTS_OPENAI_API_BASE_URL: `${stage.hob}/v1`,
    AUDIO_TTS_OPENAI_API_KEY: "none",
    AUDIO_TTS_MODEL: "kokoro",
    AUDIO_TTS_VOICE: "af_heart",
    // One round only: the last test forces a tool call in every answer.
    CHAT_RESPONSE_MAX_TOOL_CALL_ITERATIONS: "1",
    HF_HUB_OFFLINE: "1",
    OFFLINE_MODE: "true",
  });
  await answers(`${stage.url}/health`);
  stage.chromium = await launch("chromium");
  stage.page = await stage.chromium.browser.newPage();
  await stage.page.setViewport(VIEW);
  stage.page.setDefaultTimeout(START_MS);
  stage.page.on("response", (response) => response.url().endsWith("/audio/speech") && stage.speech.push(response));
}, LIMIT);

after(async () => {
  await stage.chromium?.close();
  for (const { child } of stage.processes) child.kill("SIGTERM");
  await Promise.all(stage.processes.map(({ ended }) => ended));
  await rm(stage.folder, { recursive: true, force: true });
}, LIMIT);

test("the first visit ends in a chat with the chat model", LIMIT, async () => {
  const { page } = stage;
  await page.goto(stage.url);
  await (await page.waitForSelector("::-p-text(Get started)")).click();
  for (const [field, text] of Object.entries(ACCOUNT)) await (await page.waitForSelector(`#${field}`)).type(text);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#chat-input");
  await (await page.waitForSelector("::-p-text(Okay, Let's Go!)")).click();
  await page.waitForSelector("[aria-label='Selected model: smollm2']");
});

test("an answer is shown while it is generated", LIMIT, async () => {
  const shown = await ask("Tell me about the sea.");
  const grew = shown.filter((text, at) => at > 0 && text.length > shown[at - 1].length && text.startsWith(shown[at - 1].slice(0, 8)));
  assert.ok(grew.length >= 3, `the answer grew ${grew.length} times: ${JSON.stringify(shown).slice(0, 400)}`);
});

test("the chat gets a title", LIMIT, async () => {
  await until(async () => !/^(New Chat|Open WebUI)\b/.test(await stage.page.title()), ANSWER_MS);
  // Open WebUI requests a title, follow-up questions and tags. All of these requests must succeed.
  const refused = (await metrics()).filter((line) => /^hob_requests_total\{route="\/(chat|audio).*status="[45]/.test(line));
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
  const voices = await fetched("/api/v1/audio/voices");
  const ids = voices.voices.map(({ id }) => id);
  assert.ok(ids.includes("af_heart") && ids.length > 20, ids.join(" "));
});

test("a tool is called and its result is shown", LIMIT, async () => {
  const { page } = stage;
  // A model of 135 million parameters does not call a tool on its own. All other settings are Open WebUI's defaults.
  const tool_choice = '{"type": "function", "function": {"name": "get_current_timestamp"}}';
  await fetched("/api/v1/users/user/settings/update", { ui: { params: { custom_params: { tool_choice } } } });
  await page.goto(stage.url);
  await page.waitForSelector("[aria-label='Selected model: smollm2']");
  await ask("What time is it?", () => document.body.innerText.includes("View Result from get_current_timestamp"));
});

/** Sends a message in the open chat, and returns each text of the answer that the page showed until the answer ended. */
async function ask(text, done = () => document.querySelector("[aria-label='Read Aloud']") !== null) {
  const { page } = stage;
  await page.click("#chat-input");
  await page.keyboard.type(text);
  await page.evaluate((selector) => {
    window.shown = [];
    new MutationObserver(() => {
      const text = [...document.querySelectorAll(selector)].at(-1)?.innerText.trim() ?? "";
      if (text && text !== window.shown.at(-1)) window.shown.push(text);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  }, ANSWER);
  await page.keyboard.press("Enter");
  // Does not use the browser's own wait, which ends after five minutes.
  await until(() => page.evaluate(done), ANSWER_MS);
  return page.evaluate(() => window.shown);
}

/** Sends a request as the page does, with the token of the account. */
function fetched(address, body) {
  return stage.page.evaluate(
    async (address, body) => {
      const headers = { authorization: `Bearer ${localStorage.token}`, "content-type": "application/json" };
      const response = await fetch(address, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
      if (!response.ok) throw new Error(`${address}: ${response.status} ${await response.text()}`);
      return response.json();
    },
    address,
    body,
  );
}

async function metrics() {
  const text = await (await fetch(`${stage.hob}/metrics`)).text();
  return text.split("\n");
}

function start(name, program, args, environment) {
  const child = spawn(program, args, { env: { ...process.env, ...environment }, cwd: stage.folder, stdio: ["ignore", "pipe", "pipe"] });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said.push(String(data)) > 200 && said.shift());
  const ended = new Promise((resolve) => child.on("exit", (code) => resolve({ code, said: said.join("").slice(-4000) })));
  stage.processes.push({ name, child, ended });
}

async function answers(address) {
  const dead = stage.processes.map(({ name, ended }) => ended.then(({ code, said }) => Promise.reject(new Error(`${name} ended with ${code}:\n${said}`))));
  const there = until(async () => (await fetch(address).catch(() => null))?.ok);
  await Promise.race([there, ...dead]);
}

async function until(condition, limit_ms = START_MS) {
  const end = Date.now() + limit_ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not true within ${limit_ms / 1000} s: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
