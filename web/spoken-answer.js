// One answer of a conversation: plays its sound as it arrives, and knows how much of it the user has heard.

import { fromBase64 } from "./base64.js";
import { SAMPLE_RATE_HZ, SampleReader } from "./pcm.js";
import { PcmPlayer, openAudioClock } from "./player-pcm.js";

// The page cannot make a WebSocket wait, so `Talk` ends an answer that has more unplayed sound than this.
const WAITING_MAX_S = 600;

export class SpokenAnswer {
  itemId;
  contentIndex;
  /** Whether the user has not yet heard it to its end. */
  active = true;

  #player = new PcmPlayer(openAudioClock());
  #samples = new SampleReader();
  #receivedSamples = 0;

  /** `onEnd` is called when the last sample was played, and not after `stop`. */
  constructor({ item_id: itemId, content_index: contentIndex }, onEnd) {
    this.itemId = itemId;
    this.contentIndex = contentIndex;
    this.#player.ended.then(() => {
      if (!this.active) return;
      this.active = false;
      onEnd();
    });
  }

  get isFull() {
    return this.#player.bufferedSeconds > WAITING_MAX_S;
  }

  /** Milliseconds of sound that have left the loudspeaker, at most as many as arrived. */
  get heardMs() {
    return Math.floor(1000 * Math.min(this.#player.heardSeconds, this.#receivedSamples / SAMPLE_RATE_HZ));
  }

  /** @param {string} sound the next samples, in base64 */
  feed(sound) {
    if (!this.active) return;
    const samples = this.#samples.push(fromBase64(sound));
    this.#receivedSamples += samples.length;
    this.#player.feed(samples);
  }

  /** Says that no more sound will come. */
  finish() {
    this.#player.finish();
  }

  /** Ends the sound now. @returns {number} milliseconds that the user heard */
  stop() {
    const { heardMs } = this;
    this.active = false;
    this.#player.stop();
    return heardMs;
  }
}
