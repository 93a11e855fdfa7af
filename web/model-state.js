// Says whether the voice model is in memory: asks `/ready`, often while it is not, seldom after.
// Asks nothing while nobody looks at the page.

import { readiness } from "./api.js";

const WARMING_MS = 1_000;
const AWAY_MS = 4_000;
const READY_MS = 30_000;

/** `onReady` runs each time the model has become ready, also after hob was restarted. */
export function watchModel(element, textElement, onReady) {
  let timer = 0;

  const show = (state, text, nextMs) => {
    if (state === "ready" && element.dataset.state !== "ready") onReady();
    element.dataset.state = state;
    if (textElement.textContent !== text) textElement.textContent = text;
    clearTimeout(timer);
    timer = setTimeout(look, nextMs);
  };

  const look = async () => {
    if (document.hidden) return;
    try {
      const { status, readyInS, message } = await readiness();
      show(status, texts[status]?.(readyInS, message) ?? status, status === "ready" ? READY_MS : WARMING_MS);
    } catch {
      show("away", "hob does not answer", AWAY_MS);
    }
  };

  document.addEventListener("visibilitychange", look);
  return look();
}

const texts = {
  ready: () => "Voice is warm",
  loading: (seconds) => (seconds === null ? "Voice is warming up" : `Voice is warming up, about ${Math.ceil(seconds)} s`),
  cold: () => "Voice is asleep; the first text wakes it",
  down: (_, message) => message || "Voice does not start",
};
