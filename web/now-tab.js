// The Now tab: what runs, how long answers took, what is in memory, how other servers are.
// Everything on it comes from one answer of the server; nothing is kept but rows that stay the same rows.

import { askForKey } from "./api-key.js";
import { setText } from "./dom.js";
import { JobRow } from "./now-job.js";
import { NameRow } from "./now-names.js";
import { ModelRow, ServerRow } from "./now-things.js";
import { NowWatch } from "./now-watch.js";
import { Rows } from "./rows.js";

const element = (id) => document.getElementById(id);
const board = element("now-board");
const trouble = element("now-trouble");
const state = element("now-state");

const lists = {
  running: new Rows(element("running"), ({ id }) => id, () => new JobRow()),
  names: new Rows(element("names"), ({ name }) => name, () => new NameRow()),
  memory: new Rows(element("memory"), ({ kind, name }) => `${kind} ${name}`, () => new ModelRow()),
  servers: new Rows(element("servers"), ({ name }) => name, () => new ServerRow()),
  lately: new Rows(element("lately"), ({ id }) => id, () => new JobRow()),
};

const watch = new NowWatch({ onNews: show, onTrouble: showTrouble });
let seenAt = null;
let wantsKey = false;

/** The tab was chosen, or another one was. */
export function showNow(shown) {
  watch.watched = shown;
}

function show(now) {
  seenAt = new Date();
  wantsKey = false;
  trouble.hidden = true;
  delete board.dataset.stale;
  for (const [name, entries] of Object.entries(parts(now))) {
    lists[name].show(entries);
    element(`${name}-none`).hidden = entries.length > 0;
  }
  showCounts(now);
  element("names-table").hidden = element("names-note").hidden = now.aliases.length === 0;
  const asleep = now.models.filter(({ state }) => state === "cold").map(({ name }) => name);
  element("asleep").hidden = asleep.length === 0;
  setText(element("asleep"), `Asleep: ${asleep.join(", ")}.`);
}

function parts({ requests, recent, aliases, models, upstreams }) {
  const awake = models.filter(({ state }) => state !== "cold");
  return { running: requests, names: aliases, memory: awake, servers: upstreams, lately: recent };
}

function showCounts({ requests, queue }) {
  const { in_flight: running, waiting } = queue;
  setText(element("running-count"), running === 0 ? "" : `${running}, of which ${waiting} not begun`);
  const beyond = running - requests.length;
  element("running-more").hidden = beyond <= 0;
  setText(element("running-more"), `And ${beyond} more.`);
  say(running === 0 ? "ready" : "loading", running === 0 ? "Nothing to do" : `${running} ${running === 1 ? "request" : "requests"} running`);
}

/** What is on the screen stays there, and says how old it is. */
function showTrouble(error) {
  const isKey = error.status === 401;
  say(isKey ? "unknown" : "away", isKey ? "A key is wanted" : "hob does not answer");
  const age = seenAt ? ` What stands below is from ${seenAt.toLocaleTimeString("en-GB")}.` : "";
  setText(trouble, `${error.message}${age}`);
  trouble.hidden = false;
  board.dataset.stale = "";
  // Once: whoever is typing somewhere is not pulled back every few seconds.
  if (isKey && !wantsKey) askForKey();
  wantsKey = isKey;
}

function say(dot, text) {
  state.dataset.state = dot;
  setText(element("now-state-text"), text);
}

element("key").addEventListener("change", () => watch.look());
