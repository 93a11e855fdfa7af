// The chosen run: its trace as it grows, the call that waits for approval, the answer and the files.
// One stream at a time is read. When it ends, the run itself says whether more follows.

import { actOnRun, decideApproval, requestRunEvents, runFile, showRun } from "./api.js";
import { make, setText } from "./dom.js";
import { save } from "./download.js";
import { MarkdownView } from "./markdown.js";
import { eventsOf, parseEvent } from "./sse.js";
import { RunTrace } from "./team-trace.js";
import { activityText, figuresText, jsonText, seenText, statusText } from "./team-text.js";

const AGAIN_MS = 1_000;

const page = Object.fromEntries(
  ["run", "run-title", "run-state", "run-figures", "run-error", "cancel", "resume", "approval", "approval-title", "approval-reason",
    "approval-arguments", "approve", "deny", "answer-box", "answer", "files-box", "files", "steps", "steps-more"]
    .map((name) => [name, document.getElementById(`team-${name}`)]),
);
const trace = new RunTrace(page.steps, page["steps-more"]);
const answer = new MarkdownView(page.answer);

let run = null; // as the server described it last
let reading = null; // ends the stream that is read
let isOfRun = false; // the error on the page is about the run, and not about a button

/** The id of the run that is shown. */
export function chosenRun() {
  return run?.id ?? null;
}

/** Shows another run from its start. */
export function chooseRun(id) {
  if (id === chosenRun()) return;
  leaveRun();
  run = { id, status: null };
  trace.clear();
  answer.show("");
  for (const name of ["approval", "answer-box", "files-box", "cancel", "resume"]) page[name].hidden = true;
  for (const name of ["run-title", "run-state", "run-figures"]) setText(page[name], "");
  showError(null);
  page.run.hidden = false;
  follow();
}

/** Stops reading. The run goes on. */
export function leaveRun() {
  reading?.abort();
  reading = null;
}

/** The row of this run in the list has news. Another process may have gone on with the run. */
export function noteRow(row) {
  if (row.id !== chosenRun()) return;
  setText(page["run-figures"], figuresText(row));
  if (reading === null && (row.status !== run.status || row.status === "running")) follow();
}

/** Goes on reading when the tab is shown again. */
export function followAgain() {
  if (run !== null && reading === null) follow();
}

async function follow() {
  leaveRun();
  reading = new AbortController();
  const { signal } = reading;
  try {
    draw(await showRun(run.id, signal));
    while (!signal.aborted) {
      await read(signal);
      const now = await showRun(run.id, signal);
      draw(now);
      if (now.status !== "running") break;
      await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
    }
  } catch (error) {
    if (!signal.aborted) {
      showError(error);
      isOfRun = true;
    }
  }
  if (!signal.aborted) reading = null;
}

/** Reads events until the stream ends. Only the status of the run tells whether the run has ended, too. */
async function read(signal) {
  try {
    for await (const data of eventsOf(await requestRunEvents(run.id, trace.last, signal))) {
      const event = parseEvent(data);
      if (event.error) return;
      trace.take(event);
      setText(page["run-state"], activityText(event) || statusText("running"));
    }
  } catch (error) {
    if (signal.aborted || error.status) throw error;
  }
}

function draw(described) {
  run = described;
  const { status, approval, error, files } = run;
  setText(page["run-title"], `${run.team}: ${firstLine(run.task)}`);
  setText(page["run-state"], statusText(status));
  setText(page["run-figures"], figuresText(run));
  page.cancel.hidden = !["running", "interrupted", "waiting_approval", "waiting_client"].includes(status);
  page.resume.hidden = !["interrupted", "failed"].includes(status);
  page.approval.hidden = approval === null;
  if (approval !== null) {
    setText(page["approval-title"], `${approval.agent ?? "An agent"} wants to call ${approval.tool}`);
    setText(page["approval-reason"], approval.reason);
    setText(page["approval-arguments"], seenText(jsonText(approval.arguments)));
  }
  page["answer-box"].hidden = run.answer === null;
  answer.show(run.answer ?? "");
  // An error of a run that goes on, or of a lost connection, is over. One of a button stays.
  if (error) showError(new Error(`The run failed: ${error}`));
  else if (isOfRun) showError(null);
  isOfRun = Boolean(error);
  page["files-box"].hidden = files.length === 0;
  page.files.replaceChildren(...files.map(fileRow));
}

function firstLine(text) {
  const [line] = text.trim().split("\n", 1);
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

function fileRow({ path, bytes }) {
  const button = make("button", { type: "button", className: "quiet", textContent: path });
  button.addEventListener("click", () => attempt(async () => save(await runFile(run.id, path), path.split("/").at(-1))));
  return make("li", {}, [button, " ", make("span", { className: "beside", textContent: `${bytes.toLocaleString("en")} bytes` })]);
}

function showError(error) {
  isOfRun = false;
  page["run-error"].hidden = error === null;
  setText(page["run-error"], error?.message ?? "");
}

/** @returns {Promise<boolean>} whether it succeeded */
async function attempt(work) {
  showError(null);
  try {
    await work();
    return true;
  } catch (error) {
    showError(error);
    return false;
  }
}

/** Buttons are off until the server has answered, so that a double click decides once. */
async function act(work) {
  const { id } = run;
  const hadFocus = page.run.contains(document.activeElement);
  const buttons = [page.cancel, page.resume, page.approve, page.deny];
  for (const button of buttons) button.disabled = true;
  const done = await attempt(async () => {
    const now = await work();
    if (id === chosenRun()) draw(now);
  });
  for (const button of buttons) button.disabled = false;
  // The button is gone, and the keyboard goes on from the run.
  if (hadFocus && done) page["run-title"].focus();
  if (id !== chosenRun()) return;
  if (done) follow();
  // The error says why; the run shows what is true now.
  else await showRun(id).then(draw, () => {});
}

page.cancel.addEventListener("click", () => act(() => actOnRun(run.id, "cancel")));
page.resume.addEventListener("click", () => act(() => actOnRun(run.id, "resume")));
page.approve.addEventListener("click", () => act(() => decideApproval(run.id, run.approval.id, "approve")));
page.deny.addEventListener("click", () => act(() => decideApproval(run.id, run.approval.id, "deny")));
