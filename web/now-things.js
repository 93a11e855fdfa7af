// Models in memory and other servers: a dot, a name, a state in words, and a line of numbers.

import { make, setText } from "./dom.js";
import { bytesText, msText } from "./now-text.js";

class ThingRow {
  element = make("li", { className: "thing" });
  #name = make("strong");
  #state = make("span", { className: "thing-state" });
  #figures = make("p", { className: "job-figures" });

  constructor() {
    this.element.append(make("p", { className: "thing-head model" }, [this.#name, " ", this.#state]), this.#figures);
  }

  say({ dot, name, state, figures }) {
    this.element.firstChild.dataset.state = dot;
    setText(this.#name, name);
    setText(this.#state, state);
    setText(this.#figures, figures.filter(Boolean).join(" · "));
  }
}

const MODELS = {
  warm: { dot: "ready", say: () => "warm" },
  loading: { dot: "loading", say: ({ ready_in_s: s }) => (s === null ? "loading" : `loading, about ${Math.ceil(s)} s`) },
  down: { dot: "down", say: () => "does not start" },
};

export class ModelRow extends ThingRow {
  draw(model) {
    const { dot = "unknown", say = () => model.state } = MODELS[model.state] ?? {};
    this.say({
      dot,
      name: model.name,
      state: say(model),
      figures: [
        model.kind,
        model.resident_bytes !== null && bytesText(model.resident_bytes),
        model.vram_bytes > 0 && `${bytesText(model.vram_bytes)} on the graphics card`,
        model.context_length && `${model.context_length.toLocaleString("en")} tokens of context`,
        model.state === "warm" && untilText(model),
        model.in_flight > 0 && `${model.in_flight} at work`,
      ],
    });
  }
}

/** To the minute: seconds that count down say no more. */
function untilText({ expires_at: at, in_flight: busy }) {
  if (busy > 0) return null;
  if (at === null) return "stays";
  const minutes = Math.round((Date.parse(at) - Date.now()) / 60_000);
  return minutes < 1 ? "leaves within a minute" : `leaves in ${minutes} min`;
}

const SERVERS = {
  up: { dot: "ready", say: ({ reason }) => (reason ? `answers; ${reason}` : "answers") },
  down: { dot: "down", say: ({ reason }) => reason ?? "does not answer" },
  not_asked: { dot: "unknown", say: () => "not asked yet" },
};

export class ServerRow extends ThingRow {
  draw(server) {
    const { dot = "unknown", say = () => server.state } = SERVERS[server.state] ?? {};
    this.say({
      dot: dot === "ready" && server.troubled.some(isLeftAlone) ? "loading" : dot,
      name: server.name,
      state: say(server),
      figures: [
        server.kind,
        server.url,
        `${server.models.length} ${server.models.length === 1 ? "model" : "models"}`,
        server.took_ms !== undefined && `lists them in ${msText(server.took_ms)}`,
        placesText(server),
        ...server.troubled.map(troubleText),
      ],
    });
  }
}

function placesText({ in_flight: busy, waiting, slots }) {
  const places = slots === undefined ? busy > 0 && `${busy} at work` : `${busy} of ${slots} places taken`;
  return [places, waiting > 0 && `${waiting} waiting`].filter(Boolean).join(", ");
}

function isLeftAlone({ status }) {
  return status === "open" || status === "half_open";
}

function troubleText({ name, status, open_for_s: left, last_failure: last, state_reason: reason, thinks_anyway: thinks }) {
  const how = {
    open: () => `${name} is not asked for ${Math.ceil(left)} s`,
    half_open: () => `${name} is being tried again`,
  }[status]?.() ?? name;
  const why = [last?.message, reason, thinks && "thinks although it should not"].filter(Boolean);
  return why.length > 0 ? `${how} (${why.join("; ")})` : how;
}
