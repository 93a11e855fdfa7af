// The Team tab: the list of runs, a run that streams, decisions, team files with mistakes, and hostile texts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark, openPage, saved } from "./browsers.mjs";
import { checkAccessibility, checkLayout, shoot } from "./looks.mjs";
import { BROKEN, TEAMS, push, runEvents, runRow, teamState } from "./mock-team.mjs";
import { rowsOf, textOf, untilText } from "./pilot.mjs";

const BAD = "<img src=x onerror=alert(1)><script>alert(2)</script>";
const BEGIN = [
  ["run.started", { team: "builders", task: "Build the tool" }],
  ["agent.started", { model: "fast" }],
  ["model.requested", { model: "fast", turn: 1 }],
];
const WORK = [
  ["model.answered", { target: "gpu/qwen3", prompt_tokens: 120, answer_tokens: 30, ms: 1_240 }],
  ["handoff.occurred", { to: "coder", brief: "Write f." }],
  ["agent.started", { model: "coder" }, { agent: "coder", depth: 1 }],
  ["tool.called", { call_id: "c1", name: "shell", arguments: { command: "make all" } }, { agent: "coder", depth: 1 }],
  ["tool.output", { call_id: "c1", output: { text: "line 1\nline 2", is_error: false } }, { agent: "coder", depth: 1 }],
  ["handoff.returned", { from: "coder", text: "fn f() {}" }],
];
const APPROVAL = { id: "a-1", agent: "lead", tool: "shell", arguments: '{"command":"make all && rm -rf build"}', reason: "no rule allows this command" };
const WAITING = [
  ["approval.requested", { approval: "a-1", name: "shell", arguments: {}, reason: APPROVAL.reason }],
  ["run.waiting", { approval: "a-1" }],
];
const ENDED = [["message.output", { text: "It **works**." }], ["run.ended", { status: "completed" }]];

export function teamTests(setting) {
  test("runs are listed, and the address has the chosen one", LIMIT, () => lists(setting));
  test("without a team of one's own, the tab says how to add one", LIMIT, () => without(setting));
  test("a task starts a run, which is shown while it works", LIMIT, () => streams(setting));
  test("delegates with one name have numbers", LIMIT, () => tellsApart(setting));
  test("a call is approved with all its arguments in view", LIMIT, () => decides(setting, "approve"));
  test("a call is denied", LIMIT, () => decides(setting, "deny"));
  test("a second decision is said, and the run shows what is true", LIMIT, () => second(setting));
  test("a run is cancelled, and an interrupted one resumed", LIMIT, () => cancels(setting));
  test("the error of a run is gone when the run goes on elsewhere", LIMIT, () => goesOn(setting));
  test("a team file with a mistake is named with its place", LIMIT, () => broken(setting));
  test("texts of a run are text, never markup", LIMIT, () => hostile(setting));
  test("after a crash, the trace shows what really happened", LIMIT, () => rewinds(setting));
  test("a file of a run is saved", LIMIT, () => saves(setting));
  test("teams take a key", LIMIT, () => wantsKey(setting));
  for (const width of WIDTHS_PX) test(`runs look whole at ${width} px, light`, LIMIT, () => looksWhole(setting, width));
  test("runs look whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function openTeam(setting, state, { hash = "#team", size } = {}) {
  Object.assign(setting.mock, { team: { ...teamState(), ...state } });
  const opened = await openPage(setting, `${setting.url}${hash}`, size);
  await opened.page.waitForFunction(() => document.getElementById("team-state").dataset.state !== "unknown");
  return opened;
}

async function lists(setting) {
  const runs = [runRow("r1", { status: "completed", answer: "Done." }), runRow("r2", { status: "waiting_approval", approval: APPROVAL, turns: 1 })];
  const { page, complaints } = await openTeam(setting, { runs });
  assert.equal(await page.title(), "hob team");
  const rows = await rowsOf(page, "team-runs");
  assert.match(rows[0], /^builders: Build the tool completed .*12\.4 s · 3 turns · 1,545 tokens$/);
  assert.match(rows[1], /waits for approval .* 1 turn · /);
  assert.equal(await textOf(page, "#team-state"), "1 run waits for approval");
  assert.equal(await textOf(page, "#team-run"), "");
  await page.click("#team-runs li:nth-child(1) a");
  await untilText(page, "#team-run-state", /^completed$/);
  assert.equal(await page.evaluate(() => location.hash), "#team?run=r1");
  assert.equal(await textOf(page, "#team-answer"), "Done.");
  assert.equal(await page.$$eval("#team-runs [aria-current]", (all) => all.length), 1);
  // A new run and a new state come without a click.
  setting.mock.team.runs.unshift(runRow("r3", { task: "Newer" }));
  await untilText(page, "#team-runs", /Newer/);
  await page.reload();
  await untilText(page, "#team-answer", /Done\./);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function without(setting) {
  const { page } = await openTeam(setting, { teams: TEAMS.slice(0, 1) });
  assert.match(await textOf(page, "#team-none"), /TOML file in the folder teams/);
  assert.match(await textOf(page, "#team-runs-none"), /No team has worked yet/);
  setting.mock.team.teams = TEAMS;
  await page.waitForFunction(() => document.getElementById("team-none").hidden);
  await page.close();
}

async function streams(setting) {
  const { page, complaints } = await openTeam(setting, {});
  const { mock } = setting;
  assert.equal(await page.$eval("#team-start", (button) => button.disabled), true);
  await page.select("#team-name", "builders");
  assert.equal(await textOf(page, "#team-agents"), "lead (fast) · coder (coder)");
  await page.type("#team-task", "Build the tool");
  await page.click("#team-start");
  await untilText(page, "#team-run-title", /^builders: Build the tool$/);
  assert.deepEqual(mock.team.posts, [["/v1/runs", { team: "builders", task: "Build the tool" }]]);
  push(mock, "run-1", runEvents(BEGIN));
  await untilText(page, "#team-run-state", /^lead waits for fast$/);
  push(mock, "run-1", runEvents(WORK, 4));
  await untilText(page, "#team-steps", /fn f\(\)/);
  assert.deepEqual(await rowsOf(page, "team-steps"), [
    "lead fast", "gpu/qwen3: 120 + 30 tokens, 1.2 s", "→ coder Write f.", "coder coder", 'shell {"command":"make all"}', "Output line 1…", "← coder fn f() {}",
  ]);
  const depths = await page.$$eval("#team-steps > li", (rows) => rows.map((row) => row.dataset.depth).join(""));
  assert.equal(depths, "0001110");
  await page.click("#team-steps li:nth-child(6) summary");
  assert.match(await textOf(page, "#team-steps li:nth-child(6) pre"), /^line 1\nline 2$/);
  push(mock, "run-1", runEvents(ENDED, 10), { status: "completed", answer: "It **works**." });
  await untilText(page, "#team-run-state", /^completed$/);
  assert.equal(await page.$eval("#team-answer", (answer) => answer.querySelector("strong")?.textContent), "works");
  assert.equal(await page.$eval("#team-cancel", (button) => button.hidden), true);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function tellsApart(setting) {
  const { page, complaints } = await openTeam(setting, { runs: [runRow("run-1")] }, { hash: "#team?run=run-1" });
  const { mock } = setting;
  const at = (number) => ({ agent: "tester", depth: 1, number });
  push(mock, "run-1", runEvents([
    ["agent.started", { model: "cloud" }, at(2)],
    ["tool.called", { call_id: "c", name: "look", arguments: {} }, at(1)],
    ["delegate.returned", { from: "tester", number: 2, text: "South is done." }],
  ]));
  await untilText(page, "#team-steps", /South is done/);
  assert.deepEqual(await rowsOf(page, "team-steps"), ["tester 2 cloud", "tester: look {}", "← tester 2 South is done."]);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function openWaiting(setting) {
  const events = { r1: runEvents([...BEGIN, ...WAITING]) };
  return openTeam(setting, { runs: [runRow("r1", { status: "waiting_approval", approval: APPROVAL })], events }, { hash: "#team?run=r1" });
}

async function decides(setting, decision) {
  const { page, complaints } = await openWaiting(setting);
  await untilText(page, "#team-approval-title", /^lead wants to call shell$/);
  assert.equal(await textOf(page, "#team-approval-reason"), APPROVAL.reason);
  assert.match(await textOf(page, "#team-approval-arguments"), /"command": "make all && rm -rf build"/);
  await page.focus(`#team-${decision}`);
  await page.keyboard.press("Enter");
  await untilText(page, "#team-steps", decision === "approve" ? /Approved/ : /Denied/);
  assert.deepEqual(setting.mock.team.posts, [["/v1/runs/r1/approvals/a-1", { decision }]]);
  await page.waitForFunction(() => document.getElementById("team-approval").hidden);
  assert.equal(await page.evaluate(() => document.activeElement.id), "team-run-title", "the focus is not lost");
  assert.deepEqual(setting.mock.team.seen, [0, 5], "the page asks for the events that it does not have");
  push(setting.mock, "r1", runEvents(ENDED, 7), { status: "completed", answer: "Done." });
  await untilText(page, "#team-answer", /^Done\.$/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function second(setting) {
  const { page } = await openWaiting(setting);
  await untilText(page, "#team-approval-title", /shell/);
  const { team } = setting.mock;
  Object.assign(team.runs[0], { status: "completed", approval: null, answer: "Decided elsewhere." });
  team.conflict = "a decision about a-1 was made already";
  await page.$eval("#team-approve", (button) => button.click());
  await untilText(page, "#team-run-error", /was made already/);
  await untilText(page, "#team-run-state", /^completed$/);
  assert.equal(await textOf(page, "#team-approval"), "");
  assert.equal(await textOf(page, "#team-answer"), "Decided elsewhere.");
  await page.close();
}

async function cancels(setting) {
  const runs = [runRow("r1"), runRow("r2", { status: "interrupted" })];
  const { page, complaints } = await openTeam(setting, { runs, events: { r1: runEvents(BEGIN), r2: runEvents(BEGIN) } }, { hash: "#team?run=r1" });
  await untilText(page, "#team-run-state", /^lead waits for fast$/);
  await page.click("#team-cancel");
  await untilText(page, "#team-run-state", /^cancelled$/);
  await page.click("#team-runs li:nth-child(2) a");
  await untilText(page, "#team-run-state", /^interrupted$/);
  await page.click("#team-resume");
  await untilText(page, "#team-steps", /The run goes on/);
  assert.deepEqual(setting.mock.team.posts.map(([at]) => at), ["/v1/runs/r1/cancel", "/v1/runs/r2/resume"]);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function goesOn(setting) {
  const { page, complaints } = await openTeam(setting, { runs: [runRow("r1", { status: "failed", error: "no model answers" })], events: { r1: runEvents(BEGIN) } }, { hash: "#team?run=r1" });
  await untilText(page, "#team-run-error", /^The run failed: no model answers$/);
  // The stream of the failed run is at its end, so it does not bring what follows.
  await untilText(page, "#team-steps", /lead/);
  push(setting.mock, "r1", runEvents([["run.resumed", {}]], 4), { status: "running", error: null });
  await untilText(page, "#team-steps", /The run goes on/);
  assert.equal(await textOf(page, "#team-run-error"), "");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function broken(setting) {
  const { page } = await openTeam(setting, { teams: [TEAMS[0], BROKEN, { ...BROKEN, id: "never", file: "never.toml", agents: [] }] });
  const rows = await rowsOf(page, "team-mistakes");
  assert.equal(rows[0], "builders.toml, line 11, column 1: unknown field `colour`. `hob team schema` says what a team file takes. Runs use the last version of builders without a mistake.");
  assert.match(rows[1], /^never\.toml, line 11.*takes\.$/);
  const choices = await page.$$eval("#team-name option", (all) => all.map(({ value }) => value));
  assert.deepEqual(choices, ["agent_team", "builders"], "a team that never worked cannot be chosen");
  await page.close();
}

async function hostile(setting) {
  const events = runEvents([
    ["agent.started", { model: BAD }, { agent: BAD }],
    ["handoff.occurred", { to: BAD, brief: BAD }],
    ["tool.called", { call_id: "c", name: BAD, arguments: { x: BAD } }],
    ["tool.output", { call_id: "c", output: { text: `${BAD}\n${BAD}`, is_error: true } }],
    ["model.failed", { error: BAD }],
  ]);
  const run = runRow("r1", { team: BAD, task: BAD, status: "waiting_approval", answer: BAD, error: BAD, approval: { ...APPROVAL, agent: BAD, tool: BAD, arguments: `${BAD}\u202e\u3164`, reason: BAD }, files: [{ path: BAD, bytes: 1 }] });
  const teams = [{ ...BROKEN, id: BAD, file: BAD, error: { line: null, column: null, message: BAD, hint: BAD } }];
  const { page, complaints } = await openTeam(setting, { runs: [run], events: { r1: events }, teams }, { hash: "#team?run=r1" });
  await untilText(page, "#team-steps", /The model failed/);
  assert.equal(await page.$$eval("#team-panel :is(img, script)", (all) => all.length), 0);
  assert.equal(await textOf(page, "#team-approval-arguments"), `${BAD}\\u{202e}\\u{3164}`, "no character is hidden");
  assert.match((await rowsOf(page, "team-steps"))[1], /^→ <img src=x/);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function rewinds(setting) {
  // The mock never uses a number again, so the trace is given its events here.
  const { page } = await openTeam(setting, {});
  await page.evaluate(async () => {
    const { RunTrace } = await import("./team-trace.js");
    const trace = new RunTrace(document.getElementById("team-steps"), document.getElementById("team-steps-more"));
    trace.clear();
    const event = (seq, isApproved) => ({ seq, type: "approval.resolved", depth: 0, agent: "a", data: { is_approved: isApproved } });
    for (const [seq, isApproved] of [[1, true], [2, true], [3, true], [2, false]]) trace.take(event(seq, isApproved));
  });
  assert.deepEqual(await page.$$eval("#team-steps > li", (rows) => rows.map((row) => row.textContent.trim())), ["Approved", "Denied"]);
  await page.close();
}

async function saves(setting) {
  const run = runRow("r1", { status: "completed", files: [{ path: "notes/team log.txt", bytes: 5 }] });
  const { page } = await openTeam(setting, { runs: [run], files: { "notes/team log.txt": "hello" } }, { hash: "#team?run=r1" });
  await page.waitForSelector("#team-files button");
  assert.deepEqual(await rowsOf(page, "team-files"), ["notes/team log.txt 5 bytes"]);
  await page.click("#team-files button");
  assert.equal(await saved(setting, "team log.txt"), "hello");
  await page.close();
}

async function wantsKey(setting) {
  setting.mock.team = { ...teamState(), key: true, runs: [runRow("r1", { status: "completed" })] };
  const { page } = await openPage(setting, `${setting.url}#team`);
  await untilText(page, "#team-trouble", /wants an API key/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.keyboard.type("sesame");
  await page.keyboard.press("Enter");
  await untilText(page, "#team-runs", /completed/);
  assert.equal(await textOf(page, "#team-trouble"), "");
  await page.evaluate(() => sessionStorage.clear());
  await page.close();
}

async function looksWhole(setting, width) {
  const long = "a-very-long-name-without-any-space-".repeat(5);
  const deep = Array.from({ length: 6 }, (_, depth) => ["tool.called", { call_id: "c", name: "shell", arguments: { command: long } }, { depth, agent: "coder" }]);
  const run = runRow("r1", { status: "waiting_approval", task: long, approval: { ...APPROVAL, arguments: JSON.stringify({ command: long }) }, answer: "# Done\n\nIt works.", files: [{ path: `${long}.txt`, bytes: 5 }] });
  const { page, complaints } = await openTeam(
    setting,
    { teams: [...TEAMS, { ...BROKEN, id: "other" }], runs: [run, runRow("r2", { status: "failed" })], events: { r1: runEvents([...BEGIN, ...WORK, ...deep, ...WAITING]) } },
    { hash: "#team?run=r1", size: { width, height: 1_000 } },
  );
  await untilText(page, "#team-steps", /waits for approval/);
  await shoot(page, `team-${setting.name}-${setting.scheme}-${width}`);
  await checkLayout(page, setting);
  await checkAccessibility(page, `${width} px`);
  assert.deepEqual(complaints, []);
  await page.close();
}
