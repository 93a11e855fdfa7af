// The Fit tab: what is chosen is asked and written into the address, and what is answered is shown with its reasons.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, openPage } from "./browsers.mjs";
import { checkAccessibility, checkLayout, shoot } from "./looks.mjs";
import { FIT_MODELS } from "./mock-fit.mjs";
import { textOf, untilText } from "./pilot.mjs";

const MINE = "#fit?model=mine&quant=Q8_0&machine=this+machine&context=8192";
const QWEN = "#fit?model=Qwen3-8B&quant=Q4_K_M&machine=laptop%2C+RTX+4070";

export function fitTests(setting) {
  test("a model of this hob on this machine is what is shown first", LIMIT, () => first(setting));
  test("a model that was pulled since is in the menu", LIMIT, () => pulled(setting));
  test("an address leads to a view", LIMIT, () => shared(setting));
  test("memory fills and speed falls as the context is dragged", LIMIT, () => dragged(setting));
  test("a model that does not fit is shown with the memory that is missing", LIMIT, () => tooLong(setting));
  test("an unknown speed is a dash", LIMIT, () => unknown(setting));
  test("the last question wins", LIMIT, () => lastWins(setting));
  test("refusals are said in words, and the view stays", LIMIT, () => refused(setting));
  test("a hob without the fit API says so", LIMIT, () => withoutApi(setting));
  test("a faster choice is a link to its view", LIMIT, () => instead(setting));
  test("the engine's flags can be copied", LIMIT, () => copied(setting));
  test("names of models are text, never markup", LIMIT, () => markup(setting));
  test("the Fit tab is accessible", LIMIT, () => accessible(setting));
  for (const width of WIDTHS_PX) test(`the fit looks whole at ${width} px, light`, LIMIT, () => looksWhole(setting, width));
  test("the fit looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function openFit(setting, hash = QWEN, size) {
  Object.assign(setting.mock, { fits: true, fitKey: false, fitModels: FIT_MODELS, fitAsked: [] });
  const opened = await openPage(setting, `${setting.url}${hash}`, size);
  await opened.page.waitForFunction(() => document.getElementById("fit-state").dataset.state !== "unknown");
  return opened;
}

function valuesOf(page) {
  return page.evaluate(() => ["model", "quant", "machine", "kv"].map((name) => document.getElementById(`fit-${name}`).value));
}

function hashOf(page) {
  return page.evaluate(() => location.hash);
}

async function first(setting) {
  const { page, complaints } = await openFit(setting, "#fit");
  assert.equal(await page.title(), "hob fit");
  assert.deepEqual(await valuesOf(page), ["mine", "Q8_0", "this machine", ""]);
  assert.equal(await textOf(page, "#fit-context-text"), "8,192 tokens");
  assert.equal(await textOf(page, "#fit-verdict"), "mine Q8_0 fits, with 8,192 tokens.");
  assert.equal(await hashOf(page), MINE);
  await page.click("#tab-now");
  await page.click("#tab-fit");
  await page.waitForFunction((choice) => location.hash === choice, {}, MINE);
  await untilText(page, "#fit-verdict", /^mine Q8_0 fits/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function pulled(setting) {
  const { page, complaints } = await openFit(setting, "#fit?model=mine&context=4096");
  setting.mock.fitModels = [{ ...FIT_MODELS[0], name: "another" }, ...FIT_MODELS];
  await page.click("#tab-now");
  await page.click("#tab-fit");
  await page.waitForFunction(() => document.querySelector("#fit-model option").value === "another");
  assert.deepEqual(await valuesOf(page), ["mine", "Q8_0", "this machine", ""], "the choice stays");
  assert.equal(await textOf(page, "#fit-context-text"), "4,096 tokens");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function shared(setting) {
  const { page, complaints } = await openFit(setting, `${QWEN}&context=16384&kv=q8_0/q4_0`);
  assert.deepEqual(await valuesOf(page), ["Qwen3-8B", "Q4_K_M", "laptop, RTX 4070", "q8_0/q4_0"]);
  const asked = setting.mock.fitAsked.at(-1);
  assert.deepEqual(asked, { model: "Qwen3-8B", quant: "Q4_K_M", machine: "laptop, RTX 4070", context_tokens: "16384", kv: "q8_0/q4_0" });
  assert.equal(await page.$eval("#tab-fit", (tab) => tab.getAttribute("aria-selected")), "true");
  // By another of its names, without a quant and a machine.
  await page.evaluate(() => { location.hash = "#fit?model=qwen3:8b&quant=&context=4096"; });
  await page.waitForFunction(() => location.hash.includes("model=Qwen3-8B&quant=Q4_K_M"));
  assert.deepEqual((await valuesOf(page)).slice(0, 2), ["Qwen3-8B", "Q4_K_M"]);
  // Another model is asked for in its own quant.
  await page.evaluate(() => { location.hash = "#fit?model=mine"; });
  await untilText(page, "#fit-verdict", /^mine Q8_0/);
  await page.select("#fit-model", "Qwen3-8B");
  await untilText(page, "#fit-verdict", /^Qwen3-8B Q8_0/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function dragged(setting) {
  const { page, complaints } = await openFit(setting, `${QWEN}&context=512`);
  const look = () => page.evaluate(() => ({
    kv: document.querySelectorAll(".pool-bar b")[1].getBoundingClientRect().width,
    y: Number(document.querySelector(".fit-requested").getAttribute("cy")),
    x: Number(document.querySelector(".fit-requested").getAttribute("cx")),
  }));
  const before = await look();
  await page.focus("#fit-context");
  for (let step = 0; step < 8; step += 1) await page.keyboard.press("ArrowRight");
  await untilText(page, "#fit-verdict", /with 8,192 tokens/);
  const then = await look();
  assert.ok(then.kv > before.kv && then.y > before.y && then.x > before.x, JSON.stringify([before, then]));
  assert.equal(await page.$eval("#fit-context", (slider) => slider.getAttribute("aria-valuetext")), "8,192 tokens");
  assert.match(await hashOf(page), /context=8192/);
  // Steps in between are not each asked about.
  assert.ok(setting.mock.fitAsked.length <= 9, `${setting.mock.fitAsked.length} questions`);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function tooLong(setting) {
  const { page } = await openFit(setting, `${QWEN}&context=131072`);
  assert.equal(await page.$eval("#fit-verdict", (one) => one.dataset.fits), "false");
  assert.equal(await textOf(page, "#fit-pools .pool-said"), "18.1 GB of 7.20 GB free, and 1.00 GB kept in reserve: 11.9 GB missing");
  assert.equal(await page.$eval(".pool-end", (end) => end.checkVisibility()), true);
  assert.deepEqual([await textOf(page, "#fit-most"), await textOf(page, "#fit-limit")], ["11,776", "then GPU 0 is full"]);
  assert.match(await textOf(page, "#fit-longest"), /f16: 11,776 · q8_0: 22,528 · q8_0\/q4_0: 29,440/);
  assert.equal(await textOf(page, "#fit-state"), "Qwen3-8B does not fit");
  await page.select("#fit-kv", "q8_0");
  await untilText(page, "#fit-most", /22,528/);
  await page.close();
}

async function instead(setting) {
  const { page, complaints } = await openFit(setting, `${QWEN}&context=8192&kv=f16`);
  const said = await page.$$eval("#fit-instead li", (rows) => rows.map((row) => row.innerText));
  assert.deepEqual(said, [
    "Faster Q4_K_M, q8_0: All on the card, 61 tokens/s, 22,528 tokens at most, 5.20 GB.",
    "More exact Q6_K, f16: All on the card, 22,528 tokens at most, 5.20 GB.",
  ]);
  const places = await page.$$eval("#fit-ways th", (cells) => cells.map((cell) => cell.innerText));
  assert.deepEqual(places, ["All on the card", "Split, 12 layers on GPU 0 and GPU 1"]);
  assert.equal(await page.$$eval("#fit-instead a[href]", (links) => links.length), 1, "the other quant is not to be had");
  await page.click("#fit-instead a");
  await page.waitForFunction(() => document.getElementById("fit-kv").value === "q8_0");
  assert.match(await hashOf(page), /quant=Q4_K_M&.*context=8192&kv=q8_0$/);
  await page.select("#fit-machine", "this machine");
  await page.waitForFunction(() => document.getElementById("fit-instead-box").hidden);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function unknown(setting) {
  const { page } = await openFit(setting, "#fit");
  for (const id of ["pace", "first", "sure"]) assert.equal(await textOf(page, `#fit-${id}`), "–", id);
  for (const id of ["pace-range", "basis"]) assert.equal(await textOf(page, `#fit-${id}`), "", id);
  assert.match(await textOf(page, "#fit-chart-none"), /bandwidth of this memory is not known/);
  assert.equal(await page.$eval("#fit-chart", (chart) => chart.checkVisibility()), false);
  assert.match(await textOf(page, "#fit-warnings"), /^The memory bandwidth is not known.* What helps: hob fit calibrate\.$/);
  await page.close();
}

async function lastWins(setting) {
  const { page } = await openFit(setting);
  await page.select("#fit-model", "Qwen3-70B [slow]");
  await page.select("#fit-model", "Qwen3-8B");
  await untilText(page, "#fit-verdict", /^Qwen3-8B/);
  setting.mock.events.emit("go on");
  await page.select("#fit-kv", "q8_0");
  await page.waitForFunction(() => document.getElementById("fit-ways").innerText.includes("q8_0"));
  assert.match(await textOf(page, "#fit-verdict"), /^Qwen3-8B/);
  await page.close();
}

async function refused(setting) {
  const { page } = await openFit(setting);
  await page.evaluate(() => { location.hash = "#fit?model=Qwen3-8B&machine=abacus"; });
  await untilText(page, "#fit-trouble", /^there is no machine 'abacus' here$/);
  assert.equal(await page.$eval("#fit-answer", (answer) => "stale" in answer.dataset), true);
  await page.select("#fit-machine", "this machine");
  await page.waitForFunction(() => document.getElementById("fit-trouble").hidden);
  setting.mock.fitKey = true;
  await page.select("#fit-kv", "q8_0");
  await untilText(page, "#fit-trouble", /wants an API key/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.keyboard.type("sesame");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("fit-trouble").hidden);
  await page.evaluate(() => sessionStorage.clear());
  await page.close();
}

async function withoutApi(setting) {
  Object.assign(setting.mock, { fits: false, fitKey: false, fitAsked: [] });
  const { page } = await openPage(setting, `${setting.url}#fit`);
  await untilText(page, "#fit-trouble", /This hob has no fit API/);
  assert.equal(await page.$eval("#fit-answer", (answer) => answer.hidden), true);
  assert.deepEqual(setting.mock.fitAsked, []);
  await page.close();
}

async function copied(setting) {
  const { page } = await openFit(setting);
  await page.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copiedText = text; } } });
  });
  await page.click(".fit-flags:nth-child(2) button");
  await page.waitForFunction(() => window.copiedText !== undefined);
  assert.match(await page.evaluate(() => window.copiedText), /^llama-server -m Qwen3-8B -c 8192 -np 1 -ngl 37/);
  await page.close();
}

async function markup(setting) {
  const { page, complaints } = await openFit(setting, "#fit?model=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E");
  assert.match(await textOf(page, "#fit-verdict"), /^<img src=x/);
  assert.equal(await page.$$eval("#fit-panel img", (all) => all.length), 0);
  assert.deepEqual(complaints, []);
  await page.close();
}

/** Names, roles, contrast: what axe can see. */
async function accessible(setting) {
  for (const hash of [QWEN, "#fit"]) {
    const { page } = await openFit(setting, hash);
    await page.$$eval("#fit-answer details", (all) => all.forEach((one) => { one.open = true; }));
    await checkAccessibility(page, hash);
    await page.close();
  }
}

async function looksWhole(setting, width) {
  const { scheme } = setting;
  for (const [name, hash] of [["card", QWEN], ["full", `${QWEN}&context=131072`], ["here", "#fit"]]) {
    const { page, complaints } = await openFit(setting, hash, { width, height: 1_000 });
    await shoot(page, `fit-${name}-${setting.name}-${scheme}-${width}`);
    await checkLayout(page, setting);
    assert.deepEqual(complaints, []);
    await page.close();
  }
}
