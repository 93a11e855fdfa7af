// One sound at a time, whichever tab began it.

import { choosePlayer } from "./players.js";
import { Speech } from "./speech.js";

const playerWish = new URLSearchParams(location.search).get("player") ?? "pcm";

let current = null; // the one that sounds, or sounded last

export function sounding() {
  return current;
}

/** Ends what sounds. Must run inside the click or key press: the audio clock may only start there. */
export function beginSpeech(waveform) {
  current?.stop();
  current = new Speech(choosePlayer(playerWish), waveform, performance.now());
  document.documentElement.dataset.player = current.player;
  return current;
}
