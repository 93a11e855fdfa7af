// Shows whether the voice model is in memory. Polls `/ready` every second until the model is ready, then every 30 s.
// Does not poll while the page is hidden.

import { readiness } from "./api.js";
import { setText } from "./dom.js";

const LOADING_MS = 1_000;
const AWAY_MS = 4_000;
const READY_MS = 30_000;

/** `hasModel` says whether hob has a voice model. Without one, `/ready` is about another model. */
export function watchModel(element, textElement, hasModel) {
  let timer = 0;

  const show = (state, text, nextMs) => {
    element.dataset.state = state;
    setText(textElement, text);
    clearTimeout(timer);
    timer = setTimeout(poll, nextMs);
  };

  const poll = async () => {
    if (document.hidden) return;
    try {
      const { status, readyInS, message } = await readiness();
      if (!(await hasModel())) return show("down", "No voice model yet", READY_MS);
      show(status, texts[status]?.(readyInS, message) ?? status, status === "ready" ? READY_MS : LOADING_MS);
    } catch {
      show("away", "hob does not answer", AWAY_MS);
    }
  };

  document.addEventListener("visibilitychange", poll);
  return poll();
}

const texts = {
  ready: () => "Voice model is loaded",
  loading: (seconds) => (seconds === null ? "Voice model is loading" : `Voice model is loading, about ${Math.ceil(seconds)} s`),
  cold: () => "Voice model is not loaded; the first text loads it",
  down: (_, message) => message || "Voice model failed to start; run hob doctor",
};
