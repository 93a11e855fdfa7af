// The results page, opened from disk, with a thousand runs: tables, filters, comparison, on a desk and on a phone.
// The example `page_of_many` makes the folder. Its figures are invented; only their number matters.

import assert from "node:assert/strict";
import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import axe from "axe-core";

import { DEADLINE_MS, LIMIT, WIDTHS_PX } from "./browsers.mjs";

/** Number of openings that give a median. */
const OPENINGS = 9;
/** Number of pairs that are chosen, each from a thousand runs. */
const PAIRS = 8;
/** The rules of axe that can find something in another theme, which changes colours only. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

export async function siteTests(setting, folder) {
  const run = (await readdir(path.join(folder, "run")))[0].replace(".js", "");
  const pages = ["index.html#source=published", "speech.html", "eval.html", "machines.html", "compare.html", "queued.html", "method.html", "model.html#name=qwen3-8b",
    "model.html#name=qwen3.5-9b", "machine.html#name=nvidia-rtx-4070-8-gb", `run.html#id=${run}`, "run.html#id=none"];
  const at = { ...setting, folder, pages };
  test("every column sorts, blanks last, and the address says so", LIMIT, () => sorts(setting, at));
  test("filters come from the address and go into it", LIMIT, () => filters(setting, at));
  test("creator, power limit and driver are filters where runs name them", LIMIT, () => setupFilters(setting, at));
  test("a shape takes the place of the ranges", LIMIT, () => shapes(setting, at));
  test("families fold and unfold", LIMIT, () => folds(setting, at));
  test("words explain themselves, and stop", LIMIT, () => explains(setting, at));
  test("other tables sort too", LIMIT, () => othersSort(setting, at));
  test("two runs that are chosen are compared as the page has them written", LIMIT, () => compares(setting, at));
  test("a run's page leads to the run before", LIMIT, () => leadsBack(setting, at));
  for (const width of WIDTHS_PX) test(`every page fits ${width} px, in the light and in the dark`, LIMIT, () => fits(setting, at, width));
  test("no column of the models is cut on a laptop", LIMIT, () => showsAllColumns(setting, at));
  test("everybody can use it", LIMIT, () => accessible(setting, at));
  // Firefox cannot be asked to leave scripts out.
  if (setting.name === "chromium") test("without a script, the page says what is needed", LIMIT, () => withoutScript(setting, at));
  test("a page of a thousand runs opens", LIMIT, (context) => opens(setting, at, context));
}

/** A page from disk that keeps every complaint, and everything that it asks for. */
async function open({ browser }, { folder }, file, { width = 1280, height = 900, script = true } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  await page.setViewport({ width, height });
  if (!script) await page.setJavaScriptEnabled(false);
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => /^(file|data):/.test(request.url()) || complaints.push(request.url()));
  await page.goto(`${pathToFileURL(path.join(folder, file.split("#")[0]))}${file.includes("#") ? `#${file.split("#")[1]}` : ""}`);
  return { page, complaints };
}

/** What stands in the address bar; `page.url()` would be what news of it has come so far. */
const addressOf = (page) => page.evaluate(() => location.href);

const index = (setting, at, hash = "") => open(setting, at, `index.html${hash}`);

/** What a column shows, family by family, as its cells sort. */
function column(page, key) {
  return page.evaluate((wanted) => {
    const where = [...document.querySelectorAll(".models thead th")].findIndex((head) => head.dataset.key === wanted);
    const rows = (body) => [...body.rows].filter((row) => !row.classList.contains("family") && row.checkVisibility());
    const bodies = [...document.querySelectorAll(".models tbody")].map(rows).filter((all) => all.length > 0);
    return bodies.map((all) => all.map((row) => row.cells[where].getAttribute("data-s")));
  }, key);
}

async function press(page, key) {
  await page.click(`.models th[data-key="${key}"] button`);
}

function isSorted(values, way) {
  const blank = values.indexOf(null);
  const known = blank < 0 ? values : values.slice(0, blank);
  if (blank >= 0 && values.slice(blank).some((value) => value !== null)) return false;
  return known.every((value, i) => i === 0 || (way === "desc" ? Number(known[i - 1]) >= Number(value) : Number(known[i - 1]) <= Number(value)));
}

async function sorts(setting, at) {
  const { page, complaints } = await index(setting, at);
  for (const [key, ways] of [["gen", ["desc", "asc"]], ["ttft", ["asc", "desc"]], ["mem", ["asc", "desc"]]]) {
    for (const way of ways) {
      await press(page, key);
      const families = await column(page, key);
      assert.ok(families.length > 3);
      assert.ok(families.every((values) => isSorted(values, way)), `${key} ${way}`);
      assert.ok(isSorted(families.map((values) => values[0]), way), `families by ${key} ${way}`);
      assert.equal(await page.$eval(`th[data-key="${key}"]`, (head) => head.ariaSort), way === "desc" ? "descending" : "ascending");
      assert.match(await addressOf(page), new RegExp(`sort=${key}.*way=${way}`));
    }
  }
  await press(page, "model");
  const [first] = await column(page, "model");
  assert.deepEqual(first, [...first].sort((one, other) => one.localeCompare(other, "en", { numeric: true })));
  assert.deepEqual(complaints, []);
  await page.close();
}

async function filters(setting, at) {
  const { page } = await index(setting, at, "#conc=4&kind=llm&source=hob&sort=gen");
  assert.deepEqual([...new Set((await column(page, "conc")).flat())], ["4"]);
  assert.ok((await column(page, "gen")).every((values) => isSorted(values, "desc")));
  assert.equal(await page.$eval('select[name="conc"]', (select) => select.value), "4");
  const before = (await column(page, "conc")).flat().length;
  await page.select('select[name="quant"]', "q8_0");
  assert.match(await addressOf(page), /conc=4.*quant=q8_0/);
  assert.deepEqual([...new Set((await column(page, "quant")).flat())], ["q8_0"]);
  const shared = await index(setting, at, new URL(await addressOf(page)).hash);
  assert.deepEqual(await column(shared.page, "gen"), await column(page, "gen"), "the address is the view");
  await shared.page.close();
  await page.type('input[name="q"]', "no such model");
  assert.ok(await page.$eval("#nothing", (note) => note.checkVisibility()));
  await page.click("#nothing button");
  await page.waitForFunction((count) => document.querySelectorAll(".models tbody tr:not(.family)").length > count, {}, before);
  assert.equal(new URL(await addressOf(page)).hash, "");
  await page.close();
}

/** Labels that a plan varies have filters of their own, if a run has them. */
async function setupFilters(setting, at) {
  const { page, complaints } = await index(setting, at, "#power_cap_w=180");
  const creators = () => page.$$eval(".models tbody tr:not(.family)", (rows) => rows.map((row) => row.dataset.creator));
  assert.deepEqual([...new Set(await creators())].sort(), ["bartowski", "unsloth"]);
  await page.select('select[name="creator"]', "unsloth");
  assert.match(await addressOf(page), /creator=unsloth/);
  assert.deepEqual([...new Set(await creators())], ["unsloth"]);
  assert.equal(await page.$('select[name="driver"]'), null, "no run names a driver");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function shapes(setting, at) {
  const { page, complaints } = await index(setting, at, "#source=hob");
  const ranges = () => page.$$eval(".models .shapes", (all) => all.length);
  assert.ok((await ranges()) > 20);
  await page.select('select[name="shape"]', "agentic");
  assert.equal(await ranges(), 0);
  const rows = await page.$$eval(".models tbody tr:not(.family)", (all) => all.map((row) => row.dataset.shape));
  assert.ok(rows.length > 20 && rows.every((shape) => shape === "agentic"), String(rows.length));
  await page.select('select[name="shape"]', "");
  assert.ok((await ranges()) > 20);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function folds(setting, at) {
  const { page } = await index(setting, at);
  const families = await page.$$(".fold");
  const heads = await page.$$eval(".family", (all) => all.map((head) => head.innerText.replace(/\s+/g, " ")));
  assert.ok(heads.some((head) => /Qwen3 released 2025-04 \d+ rows/.test(head)), heads.join("; "));
  const all = (await column(page, "model")).flat().length;
  await families[0].click();
  assert.equal(await families[0].evaluate((button) => button.ariaExpanded), "false");
  assert.ok((await column(page, "model")).flat().length < all);
  await families[0].click();
  await page.click('button[name="fold"]');
  assert.equal((await column(page, "model")).flat().length, 0);
  await page.click('button[name="fold"]');
  assert.equal((await column(page, "model")).flat().length, all);
  await page.close();
}

async function explains(setting, at) {
  const { page } = await index(setting, at);
  await page.focus('th[data-key="ttfat"] button');
  const told = () => page.$eval("#tip", (tip) => (tip.checkVisibility() ? tip.textContent : ""));
  // Some browsers do not treat focus set by a script as focus from the keyboard, so the test presses a key.
  await page.keyboard.press("Tab");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Tab");
  await page.keyboard.up("Shift");
  await page.waitForFunction(() => document.querySelector("#tip").checkVisibility());
  assert.match(await told(), /not thinking/);
  await page.keyboard.press("Escape");
  assert.equal(await told(), "");
  await page.close();
}

async function othersSort(setting, at) {
  const { page } = await open(setting, at, "machines.html");
  const counts = () => page.$$eval("tbody td:nth-child(3)", (cells) => cells.map((cell) => cell.dataset.s));
  await page.click("thead th:nth-child(3) button");
  assert.ok(isSorted(await counts(), "desc"));
  await page.click("thead th:nth-child(3) button");
  assert.ok(isSorted(await counts(), "asc"));
  await page.close();
}

/** What a comparison says, cell by cell, and why nothing is decided. */
const said = (page, where) => page.$eval(where, (part) => ({
  cells: [...part.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
  verdicts: [...part.querySelectorAll("tbody td:last-child")].map((cell) => cell.className),
  banner: part.querySelector(".banner").textContent,
}));

async function compares(setting, at) {
  const { page, complaints } = await open(setting, at, "compare.html");
  const pairs = await page.$$eval(".pair", (all) => all.map((pair) => [pair.dataset.base, pair.dataset.new]));
  assert.ok(pairs.length > 3, `${pairs.length} pairs`);
  const verdicts = new Set();
  for (const [base, new_] of pairs.slice(0, PAIRS)) {
    await page.select('select[name="base"]', base);
    await page.select('select[name="new"]', new_);
    const written = await said(page, `.pair[data-new="${new_}"]`);
    assert.deepEqual(await said(page, "#chosen"), written, `${base} and ${new_}`);
    written.verdicts.forEach((verdict) => verdicts.add(verdict));
    const address = await addressOf(page);
    assert.ok(address.endsWith(`#base=${base}&new=${new_}`), address);
  }
  assert.ok(verdicts.has("inconclusive") && verdicts.size > 1, [...verdicts].join());
  const other = await page.$eval('select[name="new"] optgroup:last-child', (group) => [group.label, group.firstChild.value]);
  assert.equal(other[0], "Another workload");
  await page.select('select[name="new"]', other[1]);
  assert.match(await page.$eval("#chosen", (part) => part.textContent), /Refused: different /);
  assert.equal(await page.$("#chosen table"), null);
  const before = await addressOf(page);
  await page.click('button[name="turn"]');
  assert.notEqual(await addressOf(page), before);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function leadsBack(setting, at) {
  const { page } = await open(setting, at, "compare.html");
  const [base, new_] = await page.$eval(".pair", (pair) => [pair.dataset.base, pair.dataset.new]);
  await page.goto(`${pathToFileURL(path.join(at.folder, "run.html")).href}#id=${new_}`);
  await Promise.all([page.waitForNavigation(), page.$eval("main .aside a", (link) => link.click())]);
  const address = await addressOf(page);
  assert.ok(address.endsWith(`compare.html#base=${base}&new=${new_}`), address);
  await page.waitForSelector("#chosen table");
  await page.close();
}

async function fits(setting, at, width) {
  const keep = process.env.SCREENSHOTS;
  if (keep) await mkdir(keep, { recursive: true });
  for (const file of at.pages) {
    const { page, complaints } = await open(setting, at, file, { width, height: 844 });
    for (const theme of ["light", "dark"]) {
      await page.evaluate((name) => document.documentElement.setAttribute("data-theme", name), theme);
      const room = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(room[0] <= room[1], `${file} is ${room[0]} px wide on ${room[1]}`);
      if (keep) await page.screenshot({ path: path.join(keep, `site-${setting.name}-${file.replaceAll(/\W+/g, "-")}-${width}-${theme}.png`) });
    }
    assert.deepEqual(complaints, [], file);
    await page.close();
  }
}

async function showsAllColumns(setting, at) {
  const { page } = await open(setting, at, "index.html", { width: 1280 });
  const [wide, room] = await page.$eval(".wide", (table) => [table.scrollWidth, table.clientWidth]);
  assert.ok(wide <= room, `the table is ${wide} px wide on ${room}`);
  await page.close();
}

/** What is in the way of people who do not see, or do not use a mouse. */
async function accessible(setting, at) {
  for (const file of at.pages) {
    const { page } = await open(setting, at, file);
    await page.evaluate(axe.source);
    for (const [theme, rules] of [["light", {}], ["dark", { runOnly: COLOUR_RULES }]]) {
      const found = await page.evaluate(async (name, wanted) => {
        document.documentElement.setAttribute("data-theme", name);
        const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...wanted });
        return violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
      }, theme, rules);
      assert.deepEqual(found, [], `${file}, ${theme}`);
    }
    await page.close();
  }
}

async function withoutScript(setting, at) {
  for (const file of ["index.html", "compare.html"]) {
    const { page } = await open(setting, at, file, { script: false });
    const text = await page.$eval("main", (main) => main.innerText);
    assert.match(text, /Allow JavaScript/);
    assert.match(text, /hob bench show/);
    assert.equal(await page.$("main button"), null, "no control that does nothing");
    await page.close();
  }
}

/** How long until the page can be used: reported, and not asserted, because the machine may have other work. */
async function opens(setting, at, context) {
  const times = [];
  let count = 0;
  for (let i = 0; i < OPENINGS; i += 1) {
    const { page, complaints } = await index(setting, at);
    await page.waitForSelector("html[data-ready]");
    // The script is deferred: when it has ended, everything can be pressed.
    times.push(await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventStart));
    count = await page.evaluate(() => benchmarks.runs.length); // eslint-disable-line no-undef
    assert.deepEqual(complaints, []);
    await page.close();
  }
  assert.ok(count >= 1000, `${count} runs`);
  times.sort((one, other) => one - other);
  context.diagnostic(`${count} runs: interactive after ${times[OPENINGS >> 1].toFixed(0)} ms in the middle of ${OPENINGS}`);
}
