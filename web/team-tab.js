// The Team tab: the list of runs, a form that starts one, team files with mistakes, and the chosen run.
// The chosen run is in the address, so that it can be shared.

import { askForKey } from "./api-key.js";
import { listTeamsAndRuns, startRun } from "./api.js";
import { make, setText } from "./dom.js";
import { NowWatch } from "./now-watch.js";
import { Rows } from "./rows.js";
import { chooseRun, chosenRun, followAgain, leaveRun, noteRow } from "./team-run.js";
import { figuresText, statusText } from "./team-text.js";

const EVERY_MS = 2_000;

const page = Object.fromEntries(
  ["trouble", "form", "name", "agents", "task", "form-note", "start", "none", "mistakes", "runs", "runs-none", "state", "state-text"]
    .map((name) => [name, document.getElementById(`team-${name}`)]),
);

class RunRow {
  element = make("li", { className: "thing" });
  #link = make("a", { className: "run-link" });
  #status = make("span", { className: "thing-state" });
  #figures = make("p", { className: "job-figures" });

  constructor() {
    this.element.append(this.#link, this.#status, this.#figures);
  }

  draw(row) {
    this.#link.href = `#team?run=${encodeURIComponent(row.id)}`;
    setText(this.#link, `${row.team}: ${row.task.trim().split("\n", 1)[0]}`);
    setText(this.#status, statusText(row.status));
    setText(this.#figures, figuresText(row));
    this.element.dataset.status = row.status;
    if (row.id === chosenRun()) this.#link.setAttribute("aria-current", "true");
    else this.#link.removeAttribute("aria-current");
  }
}

class MistakeRow {
  element = make("li", { className: "thing" });

  draw({ id, file, agents, error: { line, column, message, hint } }) {
    const place = line === null ? file : `${file}, line ${line}, column ${column}`;
    const served = agents.length > 0 ? ` Runs use the last version of ${id} without a mistake.` : "";
    setText(this.element, `${place}: ${message}. ${hint === null ? "" : `${hint}.`}${served}`);
  }
}

const runs = new Rows(page.runs, ({ id }) => id, () => new RunRow());
const mistakes = new Rows(page.mistakes, ({ id }) => id, () => new MistakeRow());
const watch = new NowWatch({ onNews: show, onTrouble: showTrouble, load: listTeamsAndRuns, everyMs: EVERY_MS });
let teams = [];
let rows = [];
let shown = false;

/** Called when this tab is shown or hidden. */
export function showTeam(isShown) {
  shown = isShown;
  watch.watched = shown;
  if (!shown) return leaveRun();
  takeChoice();
  followAgain();
}

function takeChoice() {
  const [tab, query] = location.hash.split("?");
  const id = tab === "#team" ? new URLSearchParams(query).get("run") : null;
  if (id === null) return;
  chooseRun(id);
  runs.show(rows);
}

function show(news) {
  page.trouble.hidden = true;
  showTeams(news.teams);
  rows = news.runs;
  runs.show(rows);
  page["runs-none"].hidden = rows.length > 0;
  rows.forEach(noteRow);
  const working = rows.filter(({ status }) => status === "running").length;
  const waiting = rows.filter(({ status }) => status === "waiting_approval").length;
  const text = waiting > 0 ? `${waiting} ${waiting === 1 ? "run waits" : "runs wait"} for approval` : working > 0 ? `${working} ${working === 1 ? "run works" : "runs work"}` : "Idle";
  setState(working + waiting > 0 ? "loading" : "ready", text);
}

function showTeams(found) {
  teams = found;
  const usable = teams.filter(({ agents }) => agents.length > 0).map(({ id }) => id);
  const known = [...page.name.options].map(({ value }) => value);
  if (usable.join() !== known.join()) {
    const wanted = page.name.value;
    page.name.replaceChildren(...usable.map((id) => new Option(id, id)));
    if (usable.includes(wanted)) page.name.value = wanted;
    page.name.disabled = usable.length === 0;
  }
  // Teams without a file are hob's own.
  page.none.hidden = teams.some(({ file }) => file !== null);
  mistakes.show(teams.filter(({ error }) => error !== null));
  showAgents();
}

function showAgents() {
  const team = teams.find(({ id }) => id === page.name.value);
  setText(page.agents, team?.agents.map(({ name, model }) => `${name} (${model})`).join(" · ") ?? "");
  page.start.disabled = team === undefined || page.task.value.trim() === "";
}

/** Keeps the last data on the screen. */
function showTrouble(error) {
  const isKey = error.status === 401;
  setState(isKey ? "unknown" : "away", isKey ? "API key needed" : "hob does not answer");
  setText(page.trouble, error.status === 404 ? "This hob has no API for teams." : error.message);
  page.trouble.hidden = false;
}

function setState(dot, text) {
  page.state.dataset.state = dot;
  setText(page["state-text"], text);
}

page.form.addEventListener("submit", async (event) => {
  event.preventDefault();
  page.start.disabled = true;
  setText(page["form-note"], "");
  try {
    const { id } = await startRun(page.name.value, page.task.value);
    page.task.value = "";
    location.hash = `#team?run=${encodeURIComponent(id)}`;
    watch.poll();
  } catch (error) {
    setText(page["form-note"], error.message);
    if (error.status === 401) askForKey();
  }
  showAgents();
});
page.task.addEventListener("input", showAgents);
page.name.addEventListener("change", showAgents);
addEventListener("hashchange", () => shown && takeChoice());
document.getElementById("key").addEventListener("change", () => {
  watch.poll();
  if (shown) followAgain();
});
