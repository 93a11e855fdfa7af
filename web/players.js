// Which player a browser gets: found by trying, in order of how soon it sounds.
// A wish (the page's `?player=`) is honoured where the browser can, so that tests reach the fallbacks.

import { BlobPlayer } from "./player-blob.js";
import { MsePlayer, msePlays } from "./player-mse.js";
import { PcmPlayer, openAudioClock } from "./player-pcm.js";

/** Call it in the click: the audio clock may only start there. */
export function choosePlayer(wish = "pcm") {
  const clock = wish === "pcm" ? openAudioClock() : null;
  if (clock) return new PcmPlayer(clock);
  if (wish !== "blob" && msePlays()) return new MsePlayer();
  return new BlobPlayer();
}
