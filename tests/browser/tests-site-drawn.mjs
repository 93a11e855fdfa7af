// What the page of benchmarks draws of given records: each test writes its own `records.js` next to the page's files.

import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

import { DEADLINE_MS, LIMIT } from "./browsers.mjs";

export async function siteDrawnTests(setting, folder) {
  const benchmarks = vm.runInNewContext(`${await readFile(path.join(folder, "records.js"), "utf8")}; benchmarks`);
  const draw = (look, data, file = "index.html", details = []) => drawn(setting, { folder, benchmarks, file, details }, data, look);
  const check = (name, body) => test(name, LIMIT, body);

  check("several shapes are a range until one is chosen", () => draw(async (page) => {
    const [text] = await rows(page);
    assert.match(text, /2 shapes.* 9–12 /);
    await page.select('select[name="shape"]', "agentic");
    assert.match((await rows(page))[0], / 9 /);
    assert.equal(await page.$eval('select[name="shape"] option:last-child', (option) => option.textContent), "short (1)");
  }, { runs: [run("a", { shape: "short", speed: 12 }), run("b", { shape: "agentic", speed: 9 })] }));

  check("the newest run that worked counts, and users are not mixed", () => draw(async (page) => {
    const [one, four] = await rows(page);
    assert.match(one, / 7 /);
    assert.match(four, / 3 /);
    assert.doesNotMatch(one + four, /99|–|5/);
  }, { runs: [run("a", { label: "failed", speed: 99 }), run("b", { speed: 7 }), run("c", { speed: 5 }), run("d", { speed: 3, users: 4 })] }));

  check("a later run without a speed leaves the speed known", () => draw(async (page) => {
    assert.match((await rows(page))[0], / 52 /);
  }, { runs: [run("a", { metrics: { ttft_ms: { p50: 300 } } }), run("b", { speed: 52 })] }));

  check("a failed run is in no range", () => draw(async (page) => {
    const [text] = await rows(page);
    assert.match(text, / 12 /);
    assert.doesNotMatch(text, /77/);
  }, { runs: [run("a", { label: "failed", shape: "t", speed: 77 }), run("b", { speed: 12 })] }));

  check("the engine and its version stand next to the backend", () => draw(async (page) => {
    const text = (await rows(page)).join("\n");
    for (const expected of ["vulkan llama.cpp b9001", "mlx mlx-audio b9001", "vLLM b9001"]) assert.ok(text.includes(expected), `${expected}: ${text}`);
  }, { runs: [["a", "llama.cpp", "vulkan"], ["b", "mlx-audio", "mlx"], ["c", "vLLM"]].map(([id, name, backend]) => run(id, { model: id, engine: { name, version: "b9001", backend } })) }));

  check("a phone reads as text what the columns mean", () => draw(async (page) => {
    await page.setViewport({ width: 390, height: 844 });
    await page.click("::-p-text(What the columns mean)");
    const text = await page.$eval("details[open] dl", (list) => list.innerText);
    const { meaning } = benchmarks.terms.find(({ name }) => name === "decode_tok_s");
    for (const expected of ["gen tok/s", "ttft", "backend", "production gap", meaning]) assert.ok(text.includes(expected), `${expected}: ${text}`);
  }, { runs: [run("a", { speed: 12 })] }));

  check("the latest family and its fastest model come first", () => draw(async (page) => {
    const names = await page.$$eval(".models .name, .models td:first-child", (all) => all.map((one) => one.textContent));
    assert.deepEqual(names, ["Young", "fast", "slow", "Old", "old", "Others", "plain"]);
  }, { runs: [run("a", { model: "plain", speed: 99, family: undefined, released: undefined }), run("b", { model: "old", speed: 90, family: "Old", released: "2024-01" }),
    run("c", { model: "slow", speed: 5, family: "Young", released: "2026-04" }), run("d", { model: "fast", speed: 50, family: "Young", released: "2026-04" })] }));

  check("an unverified run says why, and an imported one says so", () => draw(async (page) => {
    const badges = await page.$$eval(".models .badge", (all) => all.map((one) => [one.textContent, one.title]));
    assert.deepEqual(badges, [["verified", ""], ["unverified", "the server was started only once"], ["failed", "the client was the limit"]]);
    assert.equal(await page.$eval(".origin", (origin) => origin.textContent), "published");
  }, { runs: [run("a", { label: "verified", doubts: [], speed: 3 }), run("b", { model: "n", speed: 2, origin: "published" }),
    run("c", { model: "o", label: "failed", speed: 1, record: { invalid_reasons: ["the client was the limit"] } })] }));

  check("a known prompt is called so, and prefill is not drawn as speed", async () => {
    const sweep = (id, cache, ttft) => run(id, { kind: "ctx_sweep", speed: 11, cache, metrics: { ttft_ms: { p50: ttft } } });
    const runs = [sweep("a", "cold", 19_900), sweep("b", "cached", 46), run("c", { model: "n", metrics: { prefill_tok_s: { p50: 146 } } })];
    await draw(async (page) => {
      const text = (await rows(page)).join("\n");
      assert.match(text, /new prompt.*19\.9 s/);
      assert.match(text, /known prompt.*46 ms/);
    }, { runs });
    await draw(async (page) => {
      const drawnBars = await page.$eval(".bars", (bars) => bars.textContent);
      assert.doesNotMatch(drawnBars, /146/);
      assert.match(drawnBars, /new prompt.*known prompt/);
      assert.match(await page.$eval(".runs", (table) => table.textContent), /146/);
    }, { runs }, "machine.html#name=ryzen");
  });

  check("production is shown next to the bench", async () => {
    const served = { model: "m", requests: 20, first_p50_ms: 8800, first_p95_ms: 13_000 };
    const runs = [run("a", { speed: 1, production: { served, metric: "ttfa_ms", warm_ms: 190 } })];
    await draw(async (page) => assert.equal(await page.$eval("td .gap", (gap) => gap.textContent), "46.3×"), { runs });
    await draw(async (page) => {
      const text = await page.$eval("main", (main) => main.innerText);
      for (const expected of ["46.3×", "8,800 ms", "13 s", "190 ms", "20 requests"]) assert.ok(text.includes(expected), expected);
    }, { runs }, "model.html#name=m");
  });

  check("what was measured again is drawn over time", async () => {
    const again = (id, day) => run(id, { speed: 5, cell: 3, day });
    const runs = [again("a", "2026-11-09"), again("b", "2026-11-02"), again("c", "2026-11-01")];
    await draw(async (page) => {
      const charts = await page.$$eval(".chart", (all) => all.map((chart) => [chart.querySelector("figcaption").textContent, chart.querySelectorAll("circle").length]));
      assert.deepEqual(charts, [["Decode speed over time, tok/s", 3]]);
      assert.match(await page.$eval(".chart", (chart) => chart.textContent), /2026-11-01.*2026-11-09/);
    }, { runs }, "model.html#name=m");
    await draw(async (page) => assert.equal(await page.$(".chart"), null, "one point is not a curve"), { runs: [again("a", "2026-11-09")] }, "model.html#name=m");
  });

  check("a run can be repeated, doubted, and compared with the run before", () => draw(async (page) => {
    const text = await page.$eval("main", (main) => main.innerText);
    assert.ok(text.includes("hob bench --launch 'server -m '\\''a b'\\''' '' --shape=short"), text);
    assert.match(text, /Reasons for doubt\s+the server was started only once/);
    assert.match(text, /3 users against one\s+first token: 2\.84 ×\s+scaling: 0\.33, queueing/);
    assert.match(text, /family\s+Qwen3\s+released\s+2025-04/);
    assert.equal(await page.$eval("main .aside a", (link) => link.hash), "#base=b&new=a");
    await page.waitForSelector(".chart.dots");
    await page.click(".yaml summary");
    assert.match(await page.$eval(".yaml", (yaml) => yaml.innerText), /schema: bench-run\/1/);
  }, {
    runs: [run("a", {
      before: "b", has_samples: true, scaling: "queueing, not throughput", metrics: { ttft_ms: { p50: 4 } },
      record: { slowdown: { n: 3, ttft_x: 2.84, scaling: 0.33 }, harness: { argv: ["hob", "bench", "--launch", "server -m 'a b'", "", "--shape=short"] } },
    }), run("b", {})],
  }, "run.html#id=a", [{ id: "a", yaml: "schema: bench-run/1\n", samples: [{ run: 0, ttft_ms: 3 }, { run: 1, ttft_ms: 5 }], samples_left_out: 0 }]));

  check("evaluations are drawn with their frontier, and each item with its verdict", async () => {
    const score = (accuracy, seconds) => ({ n: 40, accuracy, accuracy_ci95: [accuracy - 0.1, accuracy + 0.1], score: accuracy, score_ci95: [accuracy - 0.1, accuracy + 0.1],
      verdicts: { correct: 40 * accuracy, budget: 2 }, ttfv_p50_ms: 200 * seconds, total_p50_ms: 1000 * seconds, score_per_minute: 3 });
    const evaluated = (id, model, accuracy, seconds, reasoning) => run(id, { kind: "eval", model, has_items: true, record: {
      workload: { reasoning }, eval: { tasks: ["logic-grid:3x3"], set_sha256: "s", overall: score(accuracy, seconds), families: {}, sizes: { "logic-grid:3x3": score(accuracy, seconds) } } } });
    const runs = [evaluated("a", "quick", 0.4, 2, undefined), evaluated("b", "thinker", 0.8, 60, "enabled"), evaluated("c", "worse", 0.3, 30, undefined), evaluated("d", "silent", 0, 1, undefined)];
    delete runs[3].record.eval.overall.total_p50_ms;
    Object.assign(runs[1].record.eval.overall, { energy_j_per_correct: 120, energy_j_per_correct_ci95: [90, 180] });
    const evals = [{ set_sha256: "s", names: { a: "quick", b: "thinker, thinking", c: "worse", d: "silent" }, sentences: ["quick is as good as worse."], uses: [{ scenario: "batch_reasoning", arm: "thinker", why: "thinker has the best score." }, { scenario: "voice", why: "No arm keeps the bounds." }] }];
    await draw(async (page) => {
      const text = await page.$eval("main", (main) => main.innerText);
      for (const expected of ["logic-grid:3x3", "quick is as good as worse.", "batch reasoning", "thinker has the best score.", "No arm keeps the bounds.", "40 items", "80 %", "thinking"]) assert.ok(text.includes(expected), `${expected}: ${text}`);
      assert.equal(await page.$$eval(".chart circle", (all) => all.length), 3);
      assert.equal(await page.$$eval(".evals .aside", (all) => all.filter((one) => one.textContent.includes("on the frontier")).length), 2);
      assert.deepEqual(await page.$$eval('.evals td[data-label="J/correct"]', (all) => all.map((one) => one.textContent).sort()), ["", "", "", "120 90–180"]);
    }, { runs, evals }, "eval.html");
    const items = [{ id: "logic-grid/3x3/0", prompt: "Who?", answer: "<b>me</b>", verdict: "budget", score: 0, why: "nothing was visible", graded_by: "program", total_ms: 9000, tok_s: 12.04, tool_calls: [], thought: "hm" }];
    await draw(async (page) => {
      await page.waitForSelector(".item summary");
      await page.click(".item summary");
      const text = await page.$eval(".item", (item) => item.innerText);
      for (const expected of ["the budget was spent", "logic-grid/3x3/0", "9,000 ms", "12 tok/s", "Who?", "<b>me</b>", "hm", "nothing was visible"]) assert.ok(text.includes(expected), `${expected}: ${text}`);
    }, { runs, evals }, "run.html#id=a", [{ id: "a", yaml: "", items, items_left_out: 0 }]);
  });

  check("one seed twice is refused where the server does not say what it had cached", () => draw(async (page) => {
    assert.match(await page.$eval("#chosen", (part) => part.textContent), /Refused: both runs sent the same prompts/);
  }, { runs: ["a", "b"].map((id) => run(id, { compared_by: { seed: "7", is_cache_unknown: true } })) }, "compare.html#base=b&new=a"));

  check("text of records is never markup", async () => {
    const evil = "</script><script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">'\\\"";
    const bad = run("a", {
      model: evil, shape: evil, speed: 1, family: evil, hardware: evil, released: evil, engine: { name: evil, version: evil, backend: evil, argv: [evil] },
      record: { invalid_reasons: [evil], source: { tool: evil, lossy: [evil] }, labels: { [evil]: evil } },
    });
    const data = { runs: [bad, bad], skipped: [evil], queued: [{ plan: evil, note: evil, all: 1, left: [{ target: evil, kind: evil, labels: { [evil]: evil } }] }] };
    for (const file of ["index.html", "model.html#name=m", "machine.html#name=ryzen", "run.html#id=a", "compare.html#new=a", "queued.html", "machines.html"]) {
      await draw(async (page) => {
        assert.equal(await page.$("main img, main script, footer img"), null, file);
        assert.ok((await page.$eval("body", (body) => body.textContent)).includes("<img src=x"), file);
        assert.doesNotMatch(await page.title(), /^hit$/, file);
      }, data, file, [{ id: "a", yaml: evil, samples_left_out: 0 }]);
    }
  });

  check("an empty folder says how to measure", () => draw(async (page) => {
    assert.match(await page.$eval("main", (main) => main.innerText), /Nothing was measured yet.*hob bench llm/);
  }, { runs: [] }));

  check("transcription has its errors, first words and real-time factor, alone and with three users", () => {
    const heard = (id, users, more) => run(id, { kind: "stt", shape: "spoken-1", users,
      record: { stt: { wer: 0.025, rtf: 0.21, final_text_ms: 620, utterances: 12, synthetic_by: "kokoro", languages: { en: { wer: 0.025 } }, ...more } } });
    return draw(async (page) => {
      const shown = await page.$$eval(".transcripts tbody tr", (all) => all.map((row) => [...row.cells].slice(4, 12).map((cell) => cell.innerText.trim())));
      assert.deepEqual(shown, [
        ["spoken-1, synthetic, streamed", "3", "2.5 %", "en 2.5 %", "310 ms", "620 ms", "0.21", "12"],
        ["spoken-1, synthetic", "1", "2.5 %", "en 2.5 %", "", "620 ms", "0.21", "12"],
      ]);
    }, { runs: [heard("a", 3, { stream: true, first_partial_ms: 310 }), heard("b", 1)] }, "speech.html");
  });

  check("published runs have tiers, curves and definitions", async () => {
    const textOf = async (file) => {
      let text;
      await draw(async (page) => { text = await page.$eval("main", (main) => main.innerText); }, {}, file);
      return text;
    };
    const speech = await textOf("speech.html");
    for (const expected of ["Tier 1", "Tier 2", "Tier 3", "0.19 s", "Failed: OuteTTS", "8,800 ms median", "no: cut up at the end"]) assert.ok(speech.includes(expected), expected);
    assert.match(await textOf("model.html#name=qwen3.5-9b"), /195,072 tokens started/);
    await draw(async (page) => assert.equal((await page.$$(".series")).length, 3, "three stacks"), {}, "model.html#name=qwen3.5-9b");
    const method = await textOf("method.html");
    for (const { name } of benchmarks.terms) assert.ok(method.includes(name), name);
    assert.match(method, /A figure is the median of its runs/);
  });
}

/** A run as `records.js` has it. Runs come newest first. */
function run(id, { model = "m", kind = "llm", shape = "short", speed, users = 1, cache, day = "2026-01-01", engine = {}, metrics = {}, record = {}, compared_by: compared = {}, ...more }) {
  const spreads = { ...(speed !== undefined && { decode_tok_s: { p50: speed } }), ...metrics };
  return {
    record: {
      id, kind, model: { name: model }, engine: { argv: [], params: {}, ...engine }, host: { cpu: {}, accelerators: [], noise: {} }, invalid_reasons: [],
      workload: { shape, concurrency: users, cache }, metrics: spreads, time: { started: `${day}T00:00:00Z` }, confidence: {}, source: { tool: "hob", lossy: [] }, ...record,
    },
    short_id: id, family: "Qwen3", released: "2025-04", model_slug: "m", hardware: "Ryzen", machine_slug: "ryzen", origin: "hob", label: "unverified",
    doubts: ["one_start"], has_samples: false, is_of_tiers: false, compared_by: { aspects: [], values: {}, is_cache_unknown: false, ...compared }, ...more,
  };
}

/** What each row of the table of models says. */
const rows = (page) => page.$$eval(".models tbody tr:not(.family)", (all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.trim()).join(" ").replace(/\s+/g, " ")));

/** Opens a page of its own data, and looks at it. Anything that a browser complains of is a failure. */
async function drawn({ browser }, { folder, benchmarks, file, details }, data, look) {
  const own = await mkdtemp(path.join(os.tmpdir(), "hob-site-"));
  const [name, hash] = file.split("#");
  for (const each of [name, "site.css", "site.js"]) await cp(path.join(folder, each), path.join(own, each));
  const isOwn = data.runs !== undefined;
  const rules = isOwn ? { ...benchmarks.rules, aspects: [], pairs: [], pairs_left_out: 0 } : benchmarks.rules;
  const text = JSON.stringify({ ...benchmarks, rules, skipped: [], queued: [], ...data });
  await writeFile(path.join(own, "records.js"), `const benchmarks = JSON.parse(${JSON.stringify(text)});`);
  await mkdir(path.join(own, "run"));
  for (const one of details) await writeFile(path.join(own, "run", `${one.id}.js`), `showDetails(${JSON.stringify(one)});`);
  const page = await browser.newPage();
  try {
    page.setDefaultTimeout(DEADLINE_MS);
    await page.setViewport({ width: 1280, height: 900 });
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    // A script that failed never gets the page ready.
    const failed = new Promise((_, reject) => page.on("pageerror", (error) => reject(error)));
    failed.catch((error) => complaints.push(String(error)));
    await page.goto(pathToFileURL(path.join(own, name)).href + (hash ? `#${hash}` : ""));
    await Promise.race([page.waitForSelector("html[data-ready]"), failed]);
    await look(page);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
    await rm(own, { recursive: true });
  }
}
