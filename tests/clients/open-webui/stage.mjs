// Starts hob, a new Open WebUI and Chromium for a test file, and does what a user does in its page.
// Uses Open WebUI's default settings, except hob's address and settings that keep its traffic on this machine.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";

import { launch } from "../../browser/browsers.mjs";

// Time limits that end a hanging test. A busy machine needs minutes to read 7,000 tokens.
const START_MS = 300_000;
export const ANSWER_MS = 1_800_000;
// A thousand ports in use mean that another thing is wrong.
const PORTS_TRIED_MAX = 1_000;
export const LIMIT = { timeout: ANSWER_MS + START_MS };

/** hob's key in every test. */
export const KEY = "a-key-of-this-test";
const VIEW = { width: 1200, height: 900 };
const ACCOUNT = { name: "Tester", email: "tester@example.com", password: "a password of this test" };
const ANSWER = "[id^=response-content-container]";

/** What a test file runs on. */
export class Stage {
  processes = [];
  /** The page's answers to requests for speech. */
  speech = [];

  /** `files` are written beside hob.toml: names with texts. `models` are those of the test home that hob has. */
  async open({ files, models, environment = {} }) {
    this.folder = await mkdtemp(path.join(os.tmpdir(), "open-webui-"));
    const stored = path.join(this.folder, "home", "models");
    await mkdir(stored, { recursive: true });
    for (const model of models) await symlink(path.join(process.env.HOB_HOME, "models", model), path.join(stored, model));
    for (const [name, text] of Object.entries(files)) await this.write(name, text);
    await this.#startHob();
    await this.#startOpenWebui(environment);
    this.chromium = await launch("chromium");
    this.page = await this.chromium.browser.newPage();
    await this.page.setViewport(VIEW);
    this.page.setDefaultTimeout(START_MS);
    this.page.on("response", (response) => response.url().endsWith("/audio/speech") && this.speech.push(response));
  }

  async close() {
    await this.chromium?.close();
    for (const { child } of this.processes) child.kill("SIGTERM");
    await Promise.all(this.processes.map(({ ended }) => ended));
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Writes a file beside hob.toml. */
  async write(name, text) {
    const file = path.join(this.folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  /** Makes the first account, and ends in an empty chat. */
  async signUp() {
    const { page } = this;
    await page.goto(this.url);
    await (await page.waitForSelector("::-p-text(Get started)")).click();
    for (const [field, text] of Object.entries(ACCOUNT)) await (await page.waitForSelector(`#${field}`)).type(text);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#chat-input");
    await (await page.waitForSelector("::-p-text(Okay, Let's Go!)")).click();
  }

  /** Opens an empty chat, and chooses this model for it in the list. */
  async newChat(model) {
    const { page } = this;
    await page.goto(this.url);
    await (await page.waitForSelector("[id^=model-selector-][id$=-button]")).click();
    await (await page.waitForSelector(`[aria-label='Select ${model} model']`)).click();
    await page.waitForSelector(`[aria-label='Selected model: ${model}']`);
  }

  /** Sends a message in the open chat. */
  async send(text) {
    await this.page.click("#chat-input");
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** Sends a message in the open chat, and returns each text of the answer that the page showed until the answer ended. */
  async ask(text, done = () => document.querySelector("[aria-label='Read Aloud']") !== null) {
    const { page } = this;
    await page.evaluate((selector) => {
      window.shown = [];
      new MutationObserver(() => {
        const text = [...document.querySelectorAll(selector)].at(-1)?.innerText.trim() ?? "";
        if (text && text !== window.shown.at(-1)) window.shown.push(text);
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    }, ANSWER);
    await this.send(text);
    // Does not use the browser's own wait, which ends after five minutes.
    await until(() => page.evaluate(done), ANSWER_MS);
    return page.evaluate(() => window.shown);
  }

  /** Waits until the page shows this text. */
  async shows(text) {
    const shown = () => this.page.evaluate(() => document.body.innerText);
    await until(async () => (await shown()).includes(text)).catch(async () => {
      throw new Error(`the page does not show "${text}", but:\n${await shown()}`);
    });
  }

  /** Sends a request as the page does, with the token of the account. */
  fetched(address, body) {
    return this.page.evaluate(
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

  /** Gets a page of hob as text. */
  async hob(address) {
    const response = await fetch(`${this.hobUrl}${address}`, { headers: { authorization: `Bearer ${KEY}` } });
    if (!response.ok) throw new Error(`${address}: ${response.status} ${await response.text()}`);
    return response.text();
  }

  async #startHob() {
    const port = await freePort();
    this.hobUrl = `http://127.0.0.1:${port}`;
    const config = path.join(this.folder, "hob.toml");
    const home = { HOB_HOME: path.join(this.folder, "home"), KEY_OF_THE_TEST: KEY };
    this.#start("hob", process.env.HOB, ["serve", "--config", config, "--listen", `127.0.0.1:${port}`], home);
    await this.#answers(`${this.hobUrl}/ready`);
  }

  async #startOpenWebui(environment) {
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.#start("open-webui", process.env.OPEN_WEBUI, ["serve", "--host", "127.0.0.1", "--port", String(port)], {
      DATA_DIR: path.join(this.folder, "data"),
      WEBUI_SECRET_KEY: "of this test",
      OPENAI_API_BASE_URL: `${this.hobUrl}/v1`,
      OPENAI_API_KEY: KEY,
      ENABLE_OLLAMA_API: "false",
      AUDIO_TTS_ENGINE: "openai",
      AUDIO_TTS_OPENAI_API_BASE_URL: `${this.hobUrl}/v1`,
      AUDIO_TTS_OPENAI_API_KEY: KEY,
      AUDIO_TTS_MODEL: "kokoro",
      AUDIO_TTS_VOICE: "af_heart",
      HF_HUB_OFFLINE: "1",
      OFFLINE_MODE: "true",
      ...environment,
    });
    await this.#answers(`${this.url}/health`);
  }

  #start(name, program, args, environment) {
    const child = spawn(program, args, { env: { ...process.env, ...environment }, cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    const said = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said.push(String(data)) > 200 && said.shift());
    const ended = new Promise((resolve) => child.on("exit", (code) => resolve({ code, said: said.join("").slice(-4000) })));
    this.processes.push({ name, child, said, ended });
  }

  async #answers(address) {
    const dead = this.processes.map(({ name, ended }) => ended.then(({ code, said }) => Promise.reject(new Error(`${name} ended with ${code}:\n${said}`))));
    const there = until(async () => (await fetch(address).catch(() => null))?.ok);
    await Promise.race([there, ...dead]);
  }
}

export async function until(condition, limit_ms = START_MS) {
  const end = Date.now() + limit_ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not true within ${limit_ms / 1000} s: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A port below those that Linux and macOS give to clients: another program could be given any of those meanwhile. */
async function freePort() {
  for (let attempt = 0; attempt < PORTS_TRIED_MAX; attempt += 1) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const probe = createServer();
    const isFree = await new Promise((resolve) => {
      probe.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
  throw new Error("no port between 20000 and 32000 is free");
}
