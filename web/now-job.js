// One request as a row: its name, its stage, the targets that failed, and its figures.

import { make, setText } from "./dom.js";
import { failureText, msText, secondsText, soundText, tokensText } from "./now-text.js";

const STAGES = {
  waiting: () => "waiting",
  loading: ({ ready_in_s: seconds }) => `loading its model, about ${Math.ceil(seconds)} s`,
  asking: () => "asking",
  answering: () => "answering",
  ended: ({ outcome, error }) => OUTCOMES[outcome]?.(error) ?? outcome,
};
const OUTCOMES = {
  complete: () => "answered",
  failed: (error) => (error ? `failed: ${error.replaceAll("_", " ")}` : "failed"),
  abandoned: () => "client disconnected",
};

export class JobRow {
  element = make("li", { className: "job" });
  #name = make("strong", { className: "job-name" });
  #stage = make("span", { className: "job-stage" });
  #took = make("span", { className: "job-took" });
  #route = make("p", { className: "job-way" });
  #figures = make("p", { className: "job-figures" });
  #drawnRoute = "";

  constructor() {
    const steps = make("span", { className: "steps", ariaHidden: "true" }, [make("i"), make("i"), make("i")]);
    this.element.append(make("p", { className: "job-head" }, [steps, this.#name, " ", this.#stage, this.#took]), this.#route, this.#figures);
  }

  draw(job) {
    this.element.dataset.stage = job.stage;
    if (job.outcome) this.element.dataset.outcome = job.outcome;
    this.element.title = job.id;
    setText(this.#name, job.alias);
    setText(this.#stage, STAGES[job.stage]?.(job) ?? job.stage);
    setText(this.#took, job.outcome && job.total_ms < 1_000 ? msText(job.total_ms) : secondsText(job.total_ms));
    setText(this.#figures, figures(job));
    this.#drawRoute(job);
  }

  /** The route is shown only if it differs from the name. */
  #drawRoute({ alias, target, failed }) {
    const route = JSON.stringify([alias, target, failed]);
    if (route === this.#drawnRoute) return;
    this.#drawnRoute = route;
    const steps = failed.flatMap((attempt) => [
      make("s", { textContent: attempt.target }),
      ` ${failureText(attempt.reason)} after ${msText(attempt.ms)}, then `,
    ]);
    const last = target ?? "no target yet";
    this.#route.replaceChildren(...steps, make("b", { textContent: last }));
    this.#route.hidden = failed.length === 0 && (target === null || target === alias);
  }
}

const FIRST = { chat: "first token", speech: "first sound" };

function figures(job) {
  return [
    job.route,
    job.ttft_ms !== null && FIRST[job.route] && `${FIRST[job.route]} ${msText(job.ttft_ms)}`,
    job.tokens > 0 && tokensText(job.tokens),
    job.audio_ms > 0 && soundText(job.audio_ms),
    job.tokens_per_s > 0 && `${job.tokens_per_s.toFixed(job.tokens_per_s < 10 ? 1 : 0)} tokens/s`,
    !job.warm && "cold start",
    job.overhead_ms > 0 && `hob overhead ${msText(job.overhead_ms)}`,
    job.thought_anyway && "thought although thinking is off",
    job.counted_here && "tokens counted by hob",
    job.key,
  ].filter(Boolean).join(" · ");
}
