// Tests hob's client of the Model Context Protocol with the official conformance suite: a server for each scenario.
// Environment: HOB, HOB_SCRIPTED_URL, TMPDIR. `mcp-client` is the command that the suite runs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

// The answers of the scripted model, which it gives only after the expected result of a tool.
const ANSWERS = {
  initialize: "There are no tools.",
  tools_call: "It is 8.",
  "sse-retry": "It came back.",
};
const SKIPPED = [
  [/^auth\//, "hob sends a token that the user has (`token_env`), and does not fetch one with OAuth"],
  [/^elicitation-/, "hob declines questions of servers to the user"],
];
const SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

const module = (source) => `data:text/javascript,${encodeURIComponent(source)}`;
// The suite imports a function for another command that Node 20 does not have.
const files = module('export * from "node:fs"; export const globSync = undefined;');
const hooks = module(`export const resolve = (name, context, next) =>
  name === "fs" && context.parentURL.endsWith("${SUITE}") ? { url: "${files}", shortCircuit: true } : next(name, context);`);
const preload = module(`import { register } from "node:module"; register("${hooks}");`);

const suite = (...args) => promisify(execFile)(process.execPath, ["--import", preload, SUITE, ...args]);

test("every scenario of the suite is tested, or left out for a reason", async () => {
  const { stdout } = await suite("list", "--client");
  const scenarios = [...stdout.matchAll(/^ +- (\S+)/gm)].map(([, name]) => name);
  const isSkipped = (name) => SKIPPED.some(([pattern]) => pattern.test(name));
  assert.deepEqual(scenarios.filter((name) => !isSkipped(name)).sort(), Object.keys(ANSWERS).sort());
  assert.ok(SKIPPED.every(([pattern]) => scenarios.some((name) => pattern.test(name))));
});

for (const [scenario, answer] of Object.entries(ANSWERS)) {
  test(`hob passes the scenario ${scenario}`, async () => {
    const folder = join(process.env.TMPDIR, scenario);
    // The suite also fails for warnings, so its files are judged.
    const run = await suite("client", "--command", "./mcp-client", "--scenario", scenario, "--output-dir", folder)
      .catch((failure) => failure);
    const [results] = await readdir(folder);
    const file = (name) => readFile(join(folder, results, name), "utf8");
    assert.equal(await file("stdout.txt"), `${answer}\n`, run.stderr);
    const checks = JSON.parse(await file("checks.json")).filter(({ status }) => status !== "INFO");
    assert.ok(checks.some(({ status }) => status === "SUCCESS"), run.stderr);
    // A busy machine makes a client late. Early is a fault.
    const isLate = ({ details }) => details?.slightlyLate || details?.veryLate;
    assert.deepEqual(checks.filter((check) => check.status !== "SUCCESS" && !isLate(check)), []);
  });
}
