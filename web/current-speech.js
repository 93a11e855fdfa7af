// The page plays one sound at a time, whichever tab started it.

import { choosePlayer } from "./players.js";
import { Speech } from "./speech.js";

const wantedPlayer = new URLSearchParams(location.search).get("player") ?? "pcm";

let current = null; // the speech that plays, or that played last

export function currentSpeech() {
  return current;
}

/** Stops the speech that plays, and starts a new one. Must run inside the click or key press: the audio clock may only start there. */
export function beginSpeech(waveform) {
  current?.stop();
  current = new Speech(choosePlayer(wantedPlayer), waveform, performance.now());
  document.documentElement.dataset.player = current.player;
  return current;
}
