// Faults in a chat, as a user sees them: a reason next to the answer, and a way to continue.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { LIMIT, OTHER_NAME, openPage } from "./browsers.mjs";
import { ask, askAndWait, clickIn, lastTurn, openChat, paste, untilAnswer } from "./chat-pilot.mjs";
import { checkLayout } from "./looks.mjs";
import { secondsLeft, textOf, untilState, untilText } from "./pilot.mjs";

export function chatFaultTests(setting) {
  test("Stop ends the answer at the server, and keeps what came", LIMIT, () => stopAborts(setting));
  test("Esc stops an answer, too", LIMIT, () => escapeStops(setting));
  test("an error in the stream is shown in the message", LIMIT, () => fails(setting, "[error]", "the model's process died", "One two"));
  test("an end without [DONE] is broken off", LIMIT, () => fails(setting, "[undone]", BROKEN, "One two three four."));
  test("so is a connection that breaks", LIMIT, () => breaks(setting));
  test("a refusal is shown in the server's words", LIMIT, () => fails(setting, "[long]", "this model's maximum context length is 2048 tokens, and the prompt alone has 9000 tokens: shorten it", ""));
  test("a server that is gone is named", LIMIT, () => fails(setting, "[gone]", "hob does not answer. Is it still running?", ""));
  test("a busy server says when to come back, and is asked again", LIMIT, () => busy(setting));
  test("a question without an answer is not sent again", LIMIT, () => leavesOutUnanswered(setting));
  test("an answer that is all thought, or cut short, says so", LIMIT, () => noted(setting));
  test("a key is asked for, and used", LIMIT, () => apiKey(setting));
  test("an answer without end is ended", LIMIT, () => endless(setting));
  test("a failure to speak is shown next to the answer", LIMIT, () => speechFails(setting));
  test("a message that is too long is not cut, and says so", LIMIT, () => tooLong(setting));
  test("without a chat model the page says so", LIMIT, () => noModel(setting));
  test("over plain HTTP in a network, a copy moves neither the page nor the focus", LIMIT, () => copiesInsecurely(setting));
  test("a long name of a model makes the page no wider than a phone", LIMIT, () => longName(setting));
  test("a chosen model that is away for a while is chosen again", LIMIT, () => comesBack(setting));
}

const BROKEN = "The answer was cut off: the connection closed before the end.";

async function stopAborts(setting) {
  const { page, complaints } = await openChat(setting);
  const { events } = setting.mock;
  const [closed, stalled] = [once(events, "chat closed"), once(events, "stalled")];
  await ask(page, "[stall][say]One two three four.");
  await stalled;
  await untilText(page, ".prose", /^One two$/);
  await page.type("#question", "half a thought");
  await page.click("#send");
  assert.deepEqual((await closed)[0], { wish: "[stall]", whole: false });
  events.emit("go on");
  await untilAnswer(page, "stopped");
  const { prose, note, error } = await lastTurn(page);
  assert.deepEqual({ prose, note, error }, { prose: "One two", note: "Stopped.", error: "" });
  assert.equal(await page.$eval("#question", (field) => field.value), "half a thought", "what is being written stays");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function escapeStops(setting) {
  const { page } = await openChat(setting);
  const stalled = once(setting.mock.events, "stalled");
  await ask(page, "[stall]");
  await stalled;
  await page.keyboard.press("Escape");
  await untilAnswer(page, "stopped");
  setting.mock.events.emit("go on");
  await page.close();
}

async function fails(setting, fault, message, prose) {
  const { page } = await openChat(setting);
  await ask(page, `${fault}[say]One two three four.`);
  await showsFailure(page, message, prose);
}

/** Once its words are on the screen: a browser drops what it has not handed over when a connection breaks. */
async function breaks(setting) {
  const { page } = await openChat(setting);
  const stalled = once(setting.mock.events, "stalled");
  await ask(page, "[stall][cut][say]One two three four.");
  await stalled;
  await untilText(page, ".prose", /^One two$/);
  setting.mock.events.emit("go on");
  await showsFailure(page, BROKEN, "One two");
}

async function showsFailure(page, message, prose) {
  await untilAnswer(page, "failed");
  const seen = await lastTurn(page);
  assert.equal(seen.error, message);
  assert.equal(seen.prose, prose);
  assert.match(seen.buttons, /^Try again/);
  assert.equal(await page.$eval(".turn .error:not([hidden])", (element) => element.getAttribute("role")), "alert");
  await page.close();
}

async function busy(setting) {
  const { page } = await openChat(setting);
  setting.mock.busyTimes = 1;
  const from = performance.now();
  await ask(page, "[say]Here.");
  await untilAnswer(page, "failed");
  const { error, buttons } = await lastTurn(page);
  assert.deepEqual({ error, buttons }, { error: "small is loading", buttons: "Try again" });
  const countdown = await page.$eval(".turn .retry", ({ ariaLive, textContent }) => ({ ariaLive, textContent }));
  assert.equal(countdown.ariaLive, countdown.textContent === "Try again now." ? "polite" : "off", "seconds are not read out");
  const left = await secondsLeft(page, ".turn .retry");
  assert.ok(left <= 7 && left >= 7 - (performance.now() - from) / 1000, `${left} of 7 s`);
  await clickIn(page, "Try again");
  await untilAnswer(page, "finished");
  assert.equal((await lastTurn(page)).prose, "Here.");
  assert.equal(await page.$$eval(".turn", (turns) => turns.length), 1);
  await page.close();
}

async function leavesOutUnanswered(setting) {
  const { page } = await openChat(setting);
  await ask(page, "[long]");
  await untilAnswer(page, "failed");
  await ask(page, "Shorter.");
  await untilAnswer(page, "finished");
  assert.deepEqual(setting.mock.chats.at(-1).messages, [{ role: "user", content: "Shorter." }]);
  await page.close();
}

async function noted(setting) {
  const { page } = await openChat(setting);
  await ask(page, "[think][all thought]");
  await untilAnswer(page, "finished");
  assert.match((await lastTurn(page)).note, /^All tokens went into thinking/);
  await ask(page, "[short][say]One two");
  await untilAnswer(page, "finished");
  assert.match((await lastTurn(page)).note, /^Cut off: the token limit/);
  await page.close();
}

async function apiKey(setting) {
  const { page } = await openChat(setting);
  await ask(page, "[key][say]Open.");
  await untilAnswer(page, "failed");
  await page.waitForSelector("#key-row:not([hidden])");
  await page.type("#key", "sesame");
  await clickIn(page, "Try again");
  await untilAnswer(page, "finished");
  assert.equal((await lastTurn(page)).prose, "Open.");
  await page.close();
}

/** Without a network: the mock would need minutes to send as much. */
async function endless(setting) {
  const { page } = await openChat(setting);
  const seen = await page.evaluate(async () => {
    const { Answer } = await import("./answer.js");
    const bytes = new TextEncoder().encode(`data: ${JSON.stringify({ choices: [{ delta: { content: "la ".repeat(10_000) } }] })}\n\n`);
    let aborted = false;
    window.fetch = async (_, { signal }) => {
      signal.addEventListener("abort", () => { aborted = true; });
      return new Response(new ReadableStream({ pull: (stream) => stream.enqueue(bytes) }));
    };
    const answer = new Answer();
    await answer.run({});
    return { state: answer.state, message: answer.error.message, aborted };
  });
  assert.deepEqual(seen, { state: "failed", message: "The answer is longer than 500,000 characters, so the page stopped it.", aborted: true });
  await page.close();
}

async function speechFails(setting) {
  const { page } = await openChat(setting);
  await ask(page, "[say]Read this. [busy]");
  await untilAnswer(page, "finished");
  await clickIn(page, "Speak");
  await untilState(page, "failed");
  await untilText(page, ".turn p.error", /4 speeches are waiting/);
  await page.close();
}

async function tooLong(setting) {
  const { page } = await openChat(setting);
  const asked = setting.mock.chats.length;
  assert.equal(await page.$eval("#question", (field) => field.maxLength), -1, "a browser would cut off what is pasted beyond it");
  await paste(page, "a ".repeat(100_001));
  await untilText(page, "#chat-status", /^The message has 200,002 characters\. The page sends at most 200,000\.$/);
  assert.equal(await page.$eval("#question", (field) => field.value.length), 200_002);
  assert.equal(setting.mock.chats.length, asked);
  await page.close();
}

async function noModel(setting) {
  const { mock } = setting;
  const { models } = mock;
  mock.models = models.filter(({ hob }) => hob.kind === "speech");
  const { page } = await openPage(setting, `${setting.url}#chat`);
  await untilText(page, "#chat-state", /^No chat model yet$/);
  mock.models = models;
  assert.match(await textOf(page, "#no-model"), /no chat model yet/);
  assert.equal(await page.$eval("#send", (button) => button.disabled), true);
  await page.close();
}

async function longName(setting) {
  const { mock } = setting;
  const { models } = mock;
  const name = `server/${"Model_without_a_space_".repeat(4)}`;
  mock.models = [{ ...models.find(({ id }) => id === "small"), id: name }];
  const { page } = await openChat(setting, { width: 360, height: 860 });
  await untilText(page, "#chat-state", new RegExp(`^${name} is loaded$`));
  mock.models = models;
  await checkLayout(page, setting);
  await page.close();
}

async function comesBack(setting) {
  const { mock } = setting;
  const { models } = mock;
  const { page } = await openChat(setting);
  await page.select("#chat-model", "thinker");
  const offered = (count) => page.waitForFunction((wanted) => document.querySelectorAll("#chat-model option").length === wanted, {}, count);
  // Each question asks for the list, too.
  mock.models = models.filter(({ id }) => id !== "thinker");
  await askAndWait(page, "Are you there?");
  await offered(1);
  mock.models = models;
  await askAndWait(page, "And now?");
  await offered(2);
  assert.equal(await page.$eval("#chat-model", (select) => select.value), "thinker");
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function copiesInsecurely(setting) {
  const { page } = await openChat({ ...setting, url: setting.url.replace("127.0.0.1", OTHER_NAME) });
  await paste(page, `[say]\`\`\`\nlet tea;\n\`\`\`\n\n${"A line.\n\n".repeat(60)}`);
  await untilAnswer(page, "finished");
  await page.evaluate(() => {
    document.querySelector(".code-head button").scrollIntoView({ block: "center" });
    document.addEventListener("copy", () => { window.copiedText = document.activeElement.value; });
    // The button keeps its word, however late the test looks.
    const later = window.setTimeout;
    window.setTimeout = (run, ms, ...rest) => (ms === 1_500 ? 0 : later(run, ms, ...rest));
  });
  const place = () => page.evaluate(() => ({ scrollY, fromEnd: document.documentElement.scrollHeight - innerHeight - scrollY }));
  const before = await place();
  assert.ok(before.fromEnd > 500, JSON.stringify(before));
  await page.click(".code-head button");
  await untilText(page, ".code-head button", /^Copied$/);
  assert.equal(await page.evaluate(() => window.copiedText), "let tea;");
  assert.deepEqual(await place(), before);
  assert.equal(await page.evaluate(() => document.activeElement === document.querySelector(".code-head button")), true);
  await page.close();
}
