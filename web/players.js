// Chooses a player by trying each, in the order of how soon it plays.
// The page's `?player=` names another one, so that tests reach the fallbacks.

import { BlobPlayer } from "./player-blob.js";
import { MsePlayer, msePlays } from "./player-mse.js";
import { PcmPlayer, openAudioClock } from "./player-pcm.js";

/** Call it in the click: the audio clock may only start there. */
export function choosePlayer(wanted = "pcm") {
  const clock = wanted === "pcm" ? openAudioClock() : null;
  if (clock) return new PcmPlayer(clock);
  if (wanted !== "blob" && msePlays()) return new MsePlayer();
  return new BlobPlayer();
}
