// The Chat tab as it should go: asking, reading along, thinking, timings, reading aloud, asking again.
// Faults are in tests-chat-faults.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, openPage } from "./browsers.mjs";
import { ask, askAndWait, clickIn, lastTurn, openChat, paste, untilAnswer } from "./chat-pilot.mjs";
import { checkLayout, shoot } from "./looks.mjs";
import { textOf, untilSounding, untilState, untilText } from "./pilot.mjs";

const RICH = `[think][say]### Tea for two

Boil **fresh** water, then wait *half a minute*; \`94 °C\` is right. See [the long way](https://example.org/tea).

1. Warm the pot.
2. Two spoons of leaves:
   - one for each guest,
   - none for the pot.
3. Three minutes, not four.

\`\`\`python
def steep(minutes: float = 3.0) -> str:
    return f"Poured after {minutes} minutes, which is what every careful house spirit would have done."
\`\`\`

| Leaf | Minutes |
|------|---------|
| Assam | 4 |
| Sencha | 1.5 |

> Good tea cannot be hurried.`;

export function chatTests(setting) {
  test("tabs have addresses, and arrow keys", LIMIT, () => tabs(setting));
  test("an answer streams in odd cuts, with its timings", LIMIT, () => streams(setting));
  test("text is shown while the rest is still to come", LIMIT, () => readsAlong(setting));
  test("a conversation is sent with its answers, and the system prompt", LIMIT, () => conversation(setting));
  test("thinking is folded away, and counted", LIMIT, () => thinking(setting));
  test("effort is asked only of a model that thinks; the model is remembered", LIMIT, () => effort(setting));
  test("Enter sends, Shift+Enter does not", LIMIT, () => keys(setting));
  test("an answer is spoken, and stops", LIMIT, () => speaksAnswer(setting));
  test("only one voice is heard", LIMIT, () => oneVoice(setting));
  test("regenerating replaces the last answer", LIMIT, () => regenerates(setting));
  test("a new chat forgets the old one, and nothing is stored", LIMIT, () => forgets(setting));
  test("a reader further up is not pulled down", LIMIT, () => scrolls(setting));
  test("Arabic and Hebrew are written from right to left, and code is not", LIMIT, () => rightToLeft(setting));
  test("the oldest turns go when there are too many", LIMIT, () => bounded(setting));
  for (const width of WIDTHS_PX) test(`the chat looks whole at ${width} px, light`, LIMIT, () => looksWhole(setting, width));
  test("the chat looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function tabs(setting) {
  const { page, complaints } = await openPage(setting, setting.url);
  const shown = () => page.evaluate(() => ({
    hash: location.hash.split("?")[0],
    title: document.title,
    selected: document.activeElement.getAttribute("aria-selected"),
    panels: [...document.querySelectorAll("[role=tabpanel]")].filter((panel) => panel.checkVisibility()).map((panel) => panel.id),
  }));
  await page.focus("#tab-speak");
  const next = [["hear", "transcription"], ["chat", "chat"], ["talk", "conversation"], ["team", "team"], ["fit", "fit"], ["now", "activity"], ["speak", "speech"]];
  for (const [name, does] of next) {
    await page.keyboard.press("ArrowRight");
    await untilText(page, "#does", new RegExp(`^${does}$`));
    assert.deepEqual(await shown(), { hash: `#${name}`, title: `hob ${does}`, selected: "true", panels: [`${name}-panel`] });
  }
  const isLeftToBrowser = await page.evaluate(() => {
    const back = new KeyboardEvent("keydown", { key: "ArrowLeft", altKey: true, bubbles: true, cancelable: true });
    return document.activeElement.dispatchEvent(back);
  });
  assert.ok(isLeftToBrowser, "Alt and an arrow key go back in the history");
  await page.goBack();
  await untilText(page, "#does", /^activity$/);
  await page.click("#tab-speak");
  await untilText(page, "#does", /^speech$/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function streams(setting) {
  const { page, complaints } = await openChat(setting);
  await askAndWait(page, "Good morning.");
  const seen = await lastTurn(page);
  const { firstTokenS, ...rest } = seen;
  assert.ok(firstTokenS > 0 && firstTokenS < 20, String(firstTokenS));
  assert.deepEqual(rest, {
    state: "finished",
    text: "The kettle is **on**. Sit down, and let the house do the rest: ☕ included.",
    thinking: "",
    question: "Good morning.",
    prose: "The kettle is on. Sit down, and let the house do the rest: ☕ included.",
    summary: "",
    note: "",
    error: "",
    timings: `first token ${firstTokenS.toFixed(2)} s · 41 tokens · 96 tokens/s · prompt 45 (30 cached) · queue 0.31 s`,
    buttons: "Speak|Copy|Regenerate",
  });
  assert.deepEqual(setting.mock.chats.at(-1), {
    model: "small",
    messages: [{ role: "user", content: "Good morning." }],
    stream: true,
    stream_options: { include_usage: true },
  });
  assert.match(await textOf(page, "#chat-state"), /^small is loaded$/);
  await untilText(page, "#chat-status", /^Finished\.$/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function readsAlong(setting) {
  const { page } = await openChat(setting);
  const stalled = once(setting.mock.events, "stalled");
  await ask(page, "[stall][say]One two three four.");
  await stalled;
  await page.waitForFunction(() => document.querySelector(".prose").textContent === "One two");
  assert.equal((await lastTurn(page)).buttons, "", "an answer that is not complete is neither spoken nor asked again");
  assert.match(await textOf(page, "#send"), /^Stop/);
  setting.mock.events.emit("go on");
  await untilAnswer(page, "finished");
  assert.equal((await lastTurn(page)).prose, "One two three four.");
  assert.match(await textOf(page, "#send"), /^Send/);
  await page.close();
}

async function conversation(setting) {
  const { page } = await openChat(setting);
  await page.click(".system summary");
  await page.type("#system", "Be brief.");
  await askAndWait(page, "[say]First.");
  await askAndWait(page, "[say]Second.");
  assert.deepEqual(setting.mock.chats.at(-1).messages, [
    { role: "system", content: "Be brief." },
    { role: "user", content: "[say]First." },
    { role: "assistant", content: "First." },
    { role: "user", content: "[say]Second." },
  ]);
  await page.close();
}

async function thinking(setting) {
  const { page } = await openChat(setting);
  const stalled = once(setting.mock.events, "stalled");
  await ask(page, "[think][stall in thought][say]Tea.");
  await stalled;
  await untilText(page, ".turn summary", /^Thinking… · [1-9]\d*\.\d s$|^Thinking… · 0\.[1-9] s$/);
  setting.mock.events.emit("go on");
  await untilAnswer(page, "finished");
  const folded = await lastTurn(page);
  assert.match(folded.summary, /^Thinking · \d+\.\d s · 8 tokens$/);
  assert.equal(folded.thinking, "They are cold. A kettle helps.");
  assert.equal(await page.$eval(".thinking", (details) => details.open), false);
  await page.click(".turn summary");
  await untilText(page, ".thinking p", /^They are cold\. A kettle helps\.$/);
  assert.equal(folded.prose, "Tea.");
  await askAndWait(page, "And now?");
  assert.deepEqual(setting.mock.chats.at(-1).messages[1], { role: "assistant", content: "Tea." }, "thoughts are not sent back");
  await page.close();
}

async function effort(setting) {
  const { page } = await openChat(setting);
  const offered = await page.$$eval("#chat-model option", (options) => options.map((option) => option.value));
  assert.deepEqual(offered, ["small", "thinker"], "neither a voice nor a model that cannot chat");
  assert.equal(await textOf(page, "#effort-field"), "");
  await page.select("#chat-model", "thinker");
  await page.waitForSelector("#effort-field:not([hidden])");
  await untilText(page, "#chat-state", /^thinker is not loaded/);
  await page.select("#effort", "none");
  await askAndWait(page, "Quick.");
  const { model, reasoning_effort } = setting.mock.chats.at(-1);
  assert.deepEqual({ model, reasoning_effort }, { model: "thinker", reasoning_effort: "none" });
  await page.reload();
  await page.waitForSelector("#send:not(:disabled)");
  assert.equal(await page.$eval("#chat-model", (select) => select.value), "thinker");
  assert.equal(await page.$eval("#effort", (select) => select.value), "");
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function keys(setting) {
  const { page } = await openChat(setting);
  const asked = setting.mock.chats.length;
  await page.focus("#question");
  await page.keyboard.press("Enter");
  await page.keyboard.type("One");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Shift");
  await page.keyboard.type("two");
  const isLeftToInputMethod = await page.$eval("#question", (field) => {
    return field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }));
  });
  assert.ok(isLeftToInputMethod, "in Safari, Enter that ends a composed word has this code");
  assert.equal(setting.mock.chats.length, asked, "nothing was sent yet");
  await page.keyboard.press("Enter");
  await untilAnswer(page, "finished");
  assert.equal(setting.mock.chats.at(-1).messages[0].content, "One\ntwo");
  assert.equal(await page.$eval("#question", (field) => field.value), "");
  await page.close();
}

async function speaksAnswer(setting) {
  const { page, complaints } = await openChat(setting);
  await askAndWait(page, "[say]Read *this* to me. [stall]");
  const stalled = once(setting.mock.events, "stalled");
  const closed = once(setting.mock.events, "closed");
  await clickIn(page, "Speak");
  await Promise.all([stalled, untilSounding(page)]);
  const { body } = setting.mock.requests.at(-1);
  assert.deepEqual(body, { model: "tts-1", input: "Read *this* to me. [stall]", voice: "af_heart", speed: 1, response_format: "pcm", stream: true });
  await clickIn(page, "Stop speaking");
  await untilState(page, "stopped");
  assert.equal((await closed)[0].whole, false);
  setting.mock.events.emit("go on");
  assert.equal((await lastTurn(page)).buttons, "Speak|Copy|Regenerate");
  await clickIn(page, "Speak");
  await untilSounding(page);
  await page.keyboard.press("Escape");
  await untilState(page, "stopped");
  setting.mock.events.emit("go on");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function oneVoice(setting) {
  const { page } = await openChat(setting);
  // Neither is over before the next one sounds.
  await askAndWait(page, "[say]The first answer. [stall]");
  await askAndWait(page, "[say]The second answer. [stall]");
  await page.click(".turn:first-child .speak");
  await untilSounding(page);
  await clickIn(page, "Speak");
  const labels = () => page.$$eval(".speak", (buttons) => buttons.map((button) => button.textContent));
  await page.waitForFunction(() => document.querySelector(".turn:first-child .speak").textContent === "Speak");
  assert.deepEqual(await labels(), ["Speak", "Stop speaking"]);
  await page.click("#tab-speak");
  await page.click("#speak-button");
  await page.waitForFunction(() => [...document.querySelectorAll(".speak")].every((button) => button.textContent === "Speak"));
  await untilSounding(page);
  setting.mock.events.emit("go on");
  await page.close();
}

async function regenerates(setting) {
  const { page } = await openChat(setting);
  await askAndWait(page, "[say]Once.");
  await askAndWait(page, "[say]Again.");
  assert.deepEqual(await page.$$eval(".turn", (turns) => turns.map((turn) => turn.querySelector(".after .again").checkVisibility())), [false, true]);
  const asked = setting.mock.chats.length;
  await clickIn(page, "Regenerate");
  await page.waitForFunction(() => window.hob.answer.state === "finished");
  assert.deepEqual(setting.mock.chats.at(-1), setting.mock.chats.at(asked - 1));
  assert.equal(setting.mock.chats.length, asked + 1);
  assert.equal(await page.$$eval(".turn", (turns) => turns.length), 2);
  await page.close();
}

async function forgets(setting) {
  const { page } = await openChat(setting);
  await askAndWait(page, "[say]A secret.");
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
  assert.ok(!stored.includes("secret"), stored);
  await page.click("#new-chat");
  await page.waitForSelector("#greeting:not([hidden])");
  assert.equal(await page.$$eval(".turn", (turns) => turns.length), 0);
  await askAndWait(page, "Hello.");
  assert.deepEqual(setting.mock.chats.at(-1).messages, [{ role: "user", content: "Hello." }]);
  await page.close();
}

async function scrolls(setting) {
  const { page } = await openChat(setting, { width: 800, height: 500 });
  await paste(page, `[say]${"A line.\n\n".repeat(40)}`);
  await untilAnswer(page, "finished");
  const fromEnd = () => page.evaluate(() => Math.round(document.documentElement.scrollHeight - innerHeight - scrollY));
  assert.ok((await fromEnd()) <= 1, "who reads at the end stays there");
  const stalled = once(setting.mock.events, "stalled");
  await paste(page, `[stall][say]${"Another line.\n\n".repeat(40)}`);
  await stalled;
  assert.ok((await fromEnd()) <= 1);
  await page.evaluate(() => scrollTo(0, 100));
  setting.mock.events.emit("go on");
  await untilAnswer(page, "finished");
  assert.equal(await page.evaluate(() => scrollY), 100);
  await page.close();
}

async function rightToLeft(setting) {
  const { page } = await openChat(setting);
  const directionOf = (selector) => page.$eval(selector, (element) => getComputedStyle(element).direction);
  await page.type("#question", "שלום");
  assert.equal(await directionOf("#question"), "rtl");
  await paste(page, "שלום [say]مرحبا بك في المطبخ.\n\n- واحد\n- اثنان\n\nاكتب `f(x)` هنا.\n\n```\nlet x;\n```");
  await untilAnswer(page, "finished");
  const shown = [".turn .question p", ".turn .prose", ".prose ul", ".prose p code", ".prose pre"];
  assert.deepEqual(await Promise.all(shown.map(directionOf)), ["rtl", "rtl", "rtl", "ltr", "ltr"]);
  const marks = await page.$eval(".prose ul", (list) => [getComputedStyle(list).paddingLeft, getComputedStyle(list).paddingRight]);
  assert.deepEqual(marks, ["0px", "28px"], "room for the marks is on the right");
  await page.close();
}

async function bounded(setting) {
  const { page } = await openChat(setting);
  const seen = await page.evaluate(async () => {
    const { Conversation, TURNS_MAX } = await import("./conversation.js");
    const turn = (characters) => ({ question: "?", answer: { text: "!", characters } });
    const many = new Conversation();
    const dropped = Array.from({ length: TURNS_MAX + 2 }, () => many.add(turn(1)).length);
    const large = new Conversation();
    large.add(turn(1_500_000));
    const pushedOut = large.add(turn(1_500_000)).length;
    return { dropped: dropped.reduce((a, b) => a + b), kept: many.turns.length === TURNS_MAX, pushedOut, left: large.turns.length };
  });
  assert.deepEqual(seen, { dropped: 2, kept: true, pushedOut: 1, left: 1 });
  await page.close();
}

async function looksWhole(setting, width) {
  const { scheme, name } = setting;
  const { page, complaints } = await openChat(setting, { width, height: 860 });
  const shot = (what) => shoot(page, `${name}-${scheme}-${width}-${what}`, { fullPage: false });
  await page.select("#chat-model", "thinker");
  await shot("chat-empty");
  await paste(page, RICH);
  await untilAnswer(page, "finished");
  await page.evaluate(() => scrollTo(0, 0));
  await shot("chat-top");
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await shot("chat-end");
  await checkLayout(page, setting);
  assert.deepEqual(complaints, []);
  await page.evaluate(() => localStorage.clear());
  await page.close();
}
