// The teams and runs of the mock. Tests add runs, and push events to the readers of a run.
// A stream ends when its run no longer works, as hob's does.

import { once } from "node:events";

import { json, refuse } from "./mock.mjs";

export const TEAMS = [
  { id: "agent_team", description: "Built in", entry: "orchestrator", agents: [agent("orchestrator", "reliable")], file: null, error: null },
  { id: "builders", description: null, entry: "lead", agents: [agent("lead", "fast"), agent("coder", "coder")], file: "builders.toml", error: null },
];

function agent(name, model) {
  return { name, description: "", model, tools: ["shell"], handoffs: [], delegates: [] };
}

export const BROKEN = {
  ...TEAMS[1],
  error: { line: 11, column: 1, message: "unknown field `colour`", hint: "`hob team schema` says what a team file takes" },
};

export function runRow(id, more = {}) {
  return {
    id, team: "builders", task: "Build the tool\nwith tests", status: "running", started_unix_ms: 1793491200000, time_s: 12.4,
    turns: 3, prompt_tokens: 1_200, answer_tokens: 345, approval: null, answer: null, error: null, files: [], ...more,
  };
}

/** Events of a run as hob writes them, from 1. @param {[string, object, object?][]} list types, fields, and agent with depth */
export function runEvents(list, first = 1) {
  return list.map(([type, data, where = {}], index) => ({ v: 1, seq: first + index, ts: 1793491200000 + index, run_id: "r", agent: "lead", depth: 0, type, data, ...where }));
}

/** A fresh state of the mock's teams. */
export function teamState() {
  return { teams: TEAMS, runs: [], events: {}, files: {}, posts: [], seen: [], conflict: null, key: false };
}

/** Adds events to a run, and changes it. Its readers get them. */
export function push(mock, id, events, change = {}) {
  const { team } = mock;
  team.events[id] = [...(team.events[id] ?? []), ...events];
  Object.assign(team.runs.find((run) => run.id === id), change);
  mock.events.emit("run news");
}

export async function answerTeam(mock, { request, pathname }, response) {
  const { team } = mock;
  if (team.key && request.headers.authorization !== "Bearer sesame") return refuse(response, 401, "This hob wants an API key.");
  if (pathname === "/v1/teams") return json(response, 200, { teams: team.teams });
  if (pathname === "/v1/runs" && request.method === "GET") return json(response, 200, { runs: team.runs });
  const body = Buffer.concat(await request.toArray());
  const given = body.length > 0 ? JSON.parse(body) : null;
  if (request.method === "POST") team.posts.push([pathname, given]);
  if (pathname === "/v1/runs") return start(mock, given, response);
  const [, , , id, verb, ...rest] = pathname.split("/").map(decodeURIComponent);
  const run = team.runs.find((one) => one.id === id);
  if (!run) return refuse(response, 404, `there is no run '${id}'`);
  if (verb === undefined) return json(response, 200, run);
  if (verb === "events") return stream(mock, { request, run }, response);
  if (verb === "files") return response.writeHead(200, { "Content-Type": "text/plain" }).end(team.files[rest.join("/")]);
  if (team.conflict !== null) return refuse(response, 409, team.conflict);
  act(mock, run, verb, given);
  return json(response, 200, run);
}

function start(mock, { team: name, task }, response) {
  const run = runRow(`run-${mock.team.runs.length + 1}`, { team: name, task, turns: 0, prompt_tokens: 0, answer_tokens: 0, time_s: 0 });
  mock.team.runs.unshift(run);
  json(response, 202, run);
}

function act(mock, run, verb, given) {
  const next = (mock.team.events[run.id]?.at(-1)?.seq ?? 0) + 1;
  if (verb === "cancel") return push(mock, run.id, runEvents([["run.ended", { status: "cancelled" }]], next), { status: "cancelled", approval: null });
  if (verb === "resume") return push(mock, run.id, runEvents([["run.resumed", {}]], next), { status: "running" });
  const isApproved = given.decision === "approve";
  return push(mock, run.id, runEvents([["approval.resolved", { approval: run.approval.id, is_approved: isApproved }]], next), { status: "running", approval: null });
}

async function stream(mock, { request, run }, response) {
  let seen = Number(request.headers["last-event-id"]);
  mock.team.seen.push(seen);
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write(": ping\n\n");
  while (!response.destroyed) {
    for (const event of (mock.team.events[run.id] ?? []).filter(({ seq }) => seq > seen)) {
      response.write(`id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`);
      seen = event.seq;
    }
    if (run.status !== "running") return response.end();
    await Promise.race([once(mock.events, "run news"), once(response, "close")]);
  }
}
