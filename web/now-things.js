// Rows of models and servers: a dot, a name, a state in words, and a line of figures.

import { make, setText } from "./dom.js";
import { bytesText, msText } from "./now-text.js";

class StateRow {
  element = make("li", { className: "thing" });
  #name = make("strong");
  #state = make("span", { className: "thing-state" });
  #figures = make("p", { className: "job-figures" });

  constructor() {
    this.element.append(make("p", { className: "thing-head model" }, [this.#name, " ", this.#state]), this.#figures);
  }

  show({ dot, name, state, figures }) {
    this.element.firstChild.dataset.state = dot;
    setText(this.#name, name);
    setText(this.#state, state);
    setText(this.#figures, figures.filter(Boolean).join(" · "));
  }
}

const MODELS = {
  warm: { dot: "ready", say: () => "loaded" },
  loading: { dot: "loading", say: ({ ready_in_s: s }) => (s === null ? "loading" : `loading, about ${Math.ceil(s)} s`) },
  down: { dot: "down", say: () => "failed to start" },
};

export class ModelRow extends StateRow {
  draw(model) {
    const { dot = "unknown", say: text = () => model.state } = MODELS[model.state] ?? {};
    this.show({
      dot,
      name: model.name,
      state: text(model),
      figures: [
        model.kind,
        model.resident_bytes !== null && bytesText(model.resident_bytes),
        model.vram_bytes > 0 && `${bytesText(model.vram_bytes)} on the graphics card`,
        model.context_length && `${model.context_length.toLocaleString("en")} tokens of context`,
        model.state === "warm" && untilText(model),
        model.in_flight > 0 && `${model.in_flight} in flight`,
        model.placement_note,
      ],
    });
  }
}

/** Rounded to minutes, because more precision has no use here. */
function untilText({ expires_at: at, in_flight: busy }) {
  if (busy > 0) return null;
  if (at === null) return "stays loaded";
  const minutes = Math.round((Date.parse(at) - Date.now()) / 60_000);
  return minutes < 1 ? "unloads within a minute" : `unloads in ${minutes} min`;
}

const SERVERS = {
  up: { dot: "ready", say: ({ reason }) => (reason ? `answers; ${reason}` : "answers") },
  down: { dot: "down", say: ({ reason }) => reason ?? "does not answer" },
  not_asked: { dot: "unknown", say: () => "not checked yet" },
};

export class ServerRow extends StateRow {
  draw(server) {
    const { dot = "unknown", say: text = () => server.state } = SERVERS[server.state] ?? {};
    this.show({
      dot: dot === "ready" && server.troubled.some(isPaused) ? "loading" : dot,
      name: server.name,
      state: text(server),
      figures: [
        server.kind,
        server.url,
        `${server.models.length} ${server.models.length === 1 ? "model" : "models"}`,
        server.took_ms !== undefined && `lists models in ${msText(server.took_ms)}`,
        slotsText(server),
        ...server.troubled.map(troubleText),
      ],
    });
  }
}

function slotsText({ in_flight: busy, waiting, slots }) {
  const slotsInUse = slots === undefined ? busy > 0 && `${busy} in flight` : `${busy} of ${slots} slots in use`;
  return [slotsInUse, waiting > 0 && `${waiting} waiting`].filter(Boolean).join(", ");
}

function isPaused({ status }) {
  return status === "open" || status === "half_open";
}

function troubleText({ name, status, open_for_s: left, last_failure: last, state_reason: reason, thinks_anyway: thinks }) {
  const how = {
    open: () => `${name} is paused for ${Math.ceil(left)} s`,
    half_open: () => `${name} is being tested`,
  }[status]?.() ?? name;
  const why = [last?.message, reason, thinks && "thinks although thinking is off"].filter(Boolean);
  return why.length > 0 ? `${how} (${why.join("; ")})` : how;
}
