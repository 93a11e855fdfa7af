// Tests a team of agents as a model in Open WebUI's page: chat, approval, Stop, files of teams, keys.
// The agents' models are scripted, so each answer is known.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { ANSWER_MS, KEY, LIMIT, Stage, until } from "./stage.mjs";

const CONFIG = `
[keys.webui]
secret = "env:KEY_OF_THE_TEST"
[alias.fast]
to = ["jobs-script"]
[dev.scripts]
harbour-script = "harbour.jsonl"
pilot-script = "pilot.jsonl"
jobs-script = "jobs.jsonl"
`;

const TEAM = `
entry = "harbour"
policy = { approval = "on-request" }
[[agent]]
name = "harbour"
model = "harbour-script"
handoffs = ["pilot"]
tools = ["shell"]
[[agent]]
name = "pilot"
description = "Knows the tides."
model = "pilot-script"
`;

const FIRST_ANSWER = "Low tide in Porto is at 16:40.";
const COMMAND = "echo 16:40 >> tides.txt";
const SENTENCES = Array.from({ length: 16 }, (_, at) => `Sentence number ${at + 1} says when the ships may leave the harbour.`);

const HARBOUR = [
  { when: { last: "When is low tide?", tools: ["transfer_to_pilot"] }, reply: { tool_calls: [{ name: "transfer_to_pilot", arguments: { brief: "Low tide in Porto?" } }] } },
  { when: { last: "16:40, says the table" }, reply: { content: FIRST_ANSWER } },
  { when: { last: "And a day later?", contains: FIRST_ANSWER }, reply: { content: "A day later, it is at 17:25." } },
  { when: { last: "Write it down." }, reply: { tool_calls: [{ name: "shell", arguments: { command: COMMAND } }] }, repeat: true },
  { when: { last: "denied" }, reply: { content: "It is not written down." } },
  { when: { last: "[exit code 0, no output]" }, reply: { content: "It is written down." } },
  { when: { last: "Thank you.", contains: "It is written down." }, reply: { content: "You are welcome." } },
  { when: { last: "Wait for the tide." }, reply: { content: "I wait", stall: true } },
  { when: { last: "Read the almanac." }, reply: { content: SENTENCES.join(" ") } },
];
const PILOT = [{ when: { contains: "Low tide in Porto?" }, reply: { delay_ms: 3000, content: "16:40, says the table" } }];
const JOBS = [
  { when: { last: "Generate a concise title" }, reply: { content: '{ "title": "Tides of Porto" }' }, repeat: true },
  { when: { last: "broad tags" }, reply: { content: '{ "tags": ["Seafaring"] }' }, repeat: true },
  { when: { last: "follow_ups" }, reply: { content: '{ "follow_ups": ["When is high tide?"] }' }, repeat: true },
];

const lines = (steps) => steps.map((step) => JSON.stringify(step)).join("\n");
const stage = new Stage();

before(async () => {
  await stage.open({
    files: {
      "hob.toml": CONFIG,
      "teams/port.toml": TEAM,
      "harbour.jsonl": lines(HARBOUR),
      "pilot.jsonl": lines(PILOT),
      "jobs.jsonl": lines(JOBS),
    },
    models: ["kokoro"],
  });
  await stage.signUp();
}, LIMIT);

after(() => stage.close(), LIMIT);

test("a team is chosen in the list, and its answer is shown", LIMIT, async () => {
  await stage.newChat("port");
  const shown = await stage.ask("When is low tide?");
  assert.ok(shown.at(-1).includes(FIRST_ANSWER), JSON.stringify(shown));
  assert.ok(shown.some((text) => !text.includes(FIRST_ANSWER)), `the work is shown before the answer: ${JSON.stringify(shown)}`);
  const [run, ...others] = await runs();
  assert.deepEqual([run.team, run.status, run.turns, others.length], ["port", "completed", 3, 0]);
});

test("title, tags and next questions come, and start no run", LIMIT, async () => {
  await until(async () => (await stage.page.title()).includes("Tides of Porto"));
  await stage.shows("When is high tide?");
  const chat = path.posix.basename(stage.page.url());
  await until(async () => (await stage.fetched(`/api/v1/chats/${chat}/tags`)).some(({ name }) => name === "Seafaring"));
  assert.equal((await runs()).length, 1);
});

test("the next question is answered with the first turn in view", LIMIT, async () => {
  await stage.send("And a day later?");
  await stage.shows("A day later, it is at 17:25.");
  assert.deepEqual((await runs()).map(({ status }) => status), ["completed", "completed"]);
});

test("a command that is approved in the page runs once", LIMIT, async () => {
  const run = await askForApproval();
  await (await option("Approve")).click();
  await stage.shows("It is written down.");
  assert.equal(await status(run), "completed");
  assert.equal(await stage.hob(`/v1/runs/${run}/files/tides.txt`), "16:40\n");
  // The question and its answer are a part of the chat now.
  await stage.send("Thank you.");
  await stage.shows("You are welcome.");
});

test("a command that is denied in the page does not run", LIMIT, async () => {
  const run = await askForApproval();
  // The question is still there when the page is opened again.
  await stage.page.reload();
  await (await option("Deny")).click();
  await stage.shows("It is not written down.");
  const ended = await json(`/v1/runs/${run}`);
  assert.deepEqual([ended.status, ended.files], ["completed", []]);
});

test("Stop in the page ends the run", LIMIT, async () => {
  await stage.newChat("port");
  const before = (await runs()).length;
  await stage.send("Wait for the tide.");
  const [run] = await until(async () => (await runs()).length > before && runs());
  assert.equal(run.status, "running");
  await (await stage.page.waitForSelector("button[aria-label='Stop']")).click();
  await until(async () => (await status(run.id)) !== "running");
  assert.equal(await status(run.id), "cancelled");
});

test("in voice mode, 16 sentences are spoken at once", LIMIT, async () => {
  const { page, speech } = stage;
  await stage.newChat("port");
  // Nothing is said into the microphone.
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = () => new AudioContext().createMediaStreamDestination().stream;
  });
  await (await page.waitForSelector("button[aria-label='Voice mode']")).click();
  await stage.shows("Listening...");
  await stage.send("Read the almanac.");
  await until(() => speech.length >= SENTENCES.length, ANSWER_MS);
  assert.deepEqual(speech.map((response) => response.status()), SENTENCES.map(() => 200));
  assert.ok(speech.every((response) => Number(response.headers()["content-length"]) > 10_000));
});

test("16 speech requests at once all succeed", LIMIT, async () => {
  // A page has at most six connections to a server, but Open WebUI has many pages.
  const token = await stage.page.evaluate(() => localStorage.token);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const spoken = async (_, at) => {
    const body = JSON.stringify({ input: `Ship ${at + 1}.`, voice: "af_heart" });
    const response = await fetch(`${stage.url}/api/v1/audio/speech`, { method: "POST", headers, body });
    const bytes = (await response.arrayBuffer()).byteLength;
    return response.ok && bytes > 2_000;
  };
  assert.deepEqual(await Promise.all(SENTENCES.map(spoken)), SENTENCES.map(() => true));
});

test("a team whose file is new is in the list, and a broken file takes no other away", LIMIT, async () => {
  await stage.write("teams/night-port.toml", TEAM);
  await stage.write("teams/broken.toml", "entry = 5\n");
  await stage.write("teams/port.toml", TEAM.replace("handoffs", "hand_offs"));
  await until(async () => (await models()).includes("night-port"));
  const hob = stage.processes.find(({ name }) => name === "hob");
  await until(() => ["broken.toml:1:9", "port.toml:7:1"].every((mistake) => hob.said.join("").includes(mistake)));
  const names = await models();
  assert.deepEqual([names.includes("port"), names.includes("broken")], [true, false], names.join(" "));
  await stage.newChat("night-port");
});

test("a wrong key is an error that the page shows", LIMIT, async () => {
  const { page } = stage;
  const address = { url: `${stage.hobUrl}/v1`, config: {} };
  const list = await stage.fetched("/openai/verify", { ...address, key: KEY });
  assert.ok(list.data.some(({ id }) => id === "port"));
  await assert.rejects(stage.fetched("/openai/verify", { ...address, key: "wrong" }), /401 .*the API key is not valid/);
  await page.goto(`${stage.url}/admin/settings/connections`);
  await (await page.waitForSelector("button[aria-label='Configure']")).click();
  const key = await page.waitForSelector("input[placeholder='API Key']");
  await key.click({ count: 3 });
  await key.type("wrong");
  await (await page.waitForSelector("button[aria-label='Verify Connection']")).click();
  await stage.shows("the API key is not valid");
});

/** Asks for a command in a new chat, and returns the id of the run that waits for approval. Nothing has run yet. */
async function askForApproval() {
  await stage.newChat("port");
  await stage.send("Write it down.");
  await stage.shows(COMMAND);
  const [run] = await runs();
  const waiting = await json(`/v1/runs/${run.id}`);
  assert.deepEqual([waiting.status, waiting.files], ["waiting_approval", []]);
  assert.ok(waiting.approval.arguments.includes(COMMAND), waiting.approval.arguments);
  return run.id;
}

function option(label) {
  return stage.page.waitForSelector(`section button ::-p-text(${label})`);
}

async function json(address) {
  return JSON.parse(await stage.hob(address));
}

/** The newest run is the first. */
async function runs() {
  return (await json("/v1/runs?limit=500")).runs;
}

async function status(run) {
  return (await json(`/v1/runs/${run}`)).status;
}

/** The models in Open WebUI's list. */
async function models() {
  return (await stage.fetched("/api/models")).data.map(({ id }) => id);
}
