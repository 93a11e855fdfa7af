// The Now tab: running requests, times of the last hour, models in memory, and other servers.
// All of it comes from one response of the server. Rows of the same entry stay the same elements.

import { setText } from "./dom.js";
import { HourRow } from "./now-hour-row.js";
import { JobRow } from "./now-job.js";
import { ModelRow, ServerRow } from "./now-things.js";
import { NowWatch } from "./now-watch.js";
import { Rows } from "./rows.js";

const element = (id) => document.getElementById(id);
const board = element("now-board");
const trouble = element("now-trouble");
const state = element("now-state");

const lists = {
  running: new Rows(element("running"), ({ id }) => id, () => new JobRow()),
  names: new Rows(element("names"), ({ name }) => name, () => new HourRow()),
  memory: new Rows(element("memory"), ({ kind, name }) => `${kind} ${name}`, () => new ModelRow()),
  servers: new Rows(element("servers"), ({ name }) => name, () => new ServerRow()),
  lately: new Rows(element("lately"), ({ id }) => id, () => new JobRow()),
};

const watch = new NowWatch({ onNews: show, onTrouble: showTrouble });
let receivedAt = null;

/** Called when this tab is shown or hidden. */
export function showNow(shown) {
  watch.watched = shown;
}

function show(now) {
  receivedAt = new Date();
  trouble.hidden = true;
  delete board.dataset.stale;
  for (const [name, entries] of Object.entries(parts(now))) {
    lists[name].show(entries);
    element(`${name}-none`).hidden = entries.length > 0;
  }
  showCounts(now);
  element("names-table").hidden = element("names-note").hidden = now.aliases.length === 0;
  const notLoaded = now.models.filter(({ state }) => state === "cold").map(({ name }) => name);
  element("asleep").hidden = notLoaded.length === 0;
  setText(element("asleep"), `Not loaded: ${notLoaded.join(", ")}.`);
}

function parts({ requests, recent, aliases, models, upstreams }) {
  const loaded = models.filter(({ state }) => state !== "cold");
  return { running: requests, names: aliases, memory: loaded, servers: upstreams, lately: recent };
}

function showCounts({ requests, queue }) {
  const { in_flight: running, waiting } = queue;
  setText(element("running-count"), running === 0 ? "" : `${running}, of which ${waiting} waiting`);
  const beyond = running - requests.length;
  element("running-more").hidden = beyond <= 0;
  setText(element("running-more"), `And ${beyond} more.`);
  setState(running === 0 ? "ready" : "loading", running === 0 ? "Idle" : `${running} ${running === 1 ? "request" : "requests"} running`);
}

/** Keeps the last data on the screen, and shows how old it is. */
function showTrouble(error) {
  const isKey = error.status === 401;
  setState(isKey ? "unknown" : "away", isKey ? "API key needed" : "hob does not answer");
  const age = receivedAt ? ` The data below is from ${receivedAt.toLocaleTimeString("en-GB")}.` : "";
  setText(trouble, `${error.message}${age}`);
  trouble.hidden = false;
  board.dataset.stale = "";
}

function setState(dot, text) {
  state.dataset.state = dot;
  setText(element("now-state-text"), text);
}

element("key").addEventListener("change", () => watch.poll());
