// The second player: MP3 as it arrives through Media Source Extensions.
// For browsers without a usable audio clock; Firefox has no audio/mpeg here and goes on to the Blob.

const MIME = "audio/mpeg";
// Beyond this the reader pauses: about eight minutes at 128 kbit/s.
const WAITING_MAX_BYTES = 8 * 1024 * 1024;
// Kept behind the playhead when the browser's own buffer is full.
const KEPT_BEHIND_S = 5;

export function msePlays() {
  return globalThis.MediaSource?.isTypeSupported(MIME) ?? false;
}

export class MsePlayer {
  kind = "mse";
  format = "mp3";
  underruns = 0;
  firstScheduledAt = null;
  firstAudibleAt = null;

  #audio = new Audio();
  #source = new MediaSource();
  #url = URL.createObjectURL(this.#source);
  #buffer = null;
  #waiting = [];
  #waitingBytes = 0;
  #finished = false;
  #over = false;
  #blocked = false;
  #failure = null;
  #roomIsFree = null;
  #end;
  /** Settles after the last sound; rejects where the browser cannot make sound of the bytes. */
  ended = new Promise((resolve, reject) => (this.#end = { resolve, reject }));

  constructor() {
    this.#source.addEventListener("sourceopen", () => this.#open(), { once: true });
    this.#audio.addEventListener("playing", () => this.#notePlaying());
    this.#audio.addEventListener("waiting", () => this.#noteDry());
    this.#audio.addEventListener("timeupdate", () => this.#append());
    this.#audio.addEventListener("ended", () => this.#close());
    this.#audio.addEventListener("error", () => this.#fail());
    this.ended.catch(() => {}); // the next `feed` says it first
    this.#audio.src = this.#url;
    // In the click, before there is data: later the browser might not let it.
    this.#audio.play().catch((error) => (this.#blocked = error.name === "NotAllowedError"));
  }

  /** @param {Uint8Array} bytes */
  feed(bytes) {
    if (this.#failure) throw this.#failure;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#append();
  }

  finish() {
    this.#finished = true;
    this.#append();
  }

  room() {
    if (this.#waitingBytes < WAITING_MAX_BYTES) return Promise.resolve();
    return new Promise((resolve) => (this.#roomIsFree = resolve));
  }

  stop() {
    this.#audio.pause();
    this.#discard();
    this.#close();
  }

  get scheduledSeconds() {
    const ranges = this.#audio.buffered;
    return ranges.length > 0 ? ranges.end(ranges.length - 1) : 0;
  }

  get playedSeconds() {
    return this.#audio.currentTime;
  }

  get bufferedSeconds() {
    return this.#over ? 0 : Math.max(0, this.scheduledSeconds - this.playedSeconds);
  }

  get heldBack() {
    return this.#blocked;
  }

  #open() {
    this.#buffer = this.#source.addSourceBuffer(MIME);
    this.#buffer.addEventListener("updateend", () => this.#append());
    this.#append();
  }

  #append() {
    if (this.#source.readyState !== "open" || this.#buffer === null || this.#buffer.updating) return;
    if (this.#waiting.length > 0) this.#appendNext();
    else if (this.#finished) this.#endOfStream();
  }

  #appendNext() {
    try {
      this.#buffer.appendBuffer(this.#waiting[0]);
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
      return this.#makeSpace(); // the piece stays, and is tried again as the playhead moves
    }
    this.#waitingBytes -= this.#waiting.shift().length;
    if (this.#waitingBytes < WAITING_MAX_BYTES) this.#roomIsFree?.();
  }

  #makeSpace() {
    const until = this.#audio.currentTime - KEPT_BEHIND_S;
    if (until > 0) this.#buffer.remove(0, until);
  }

  #endOfStream() {
    this.#source.endOfStream();
    if (this.scheduledSeconds === 0) this.#close();
  }

  #notePlaying() {
    this.firstScheduledAt ??= performance.now();
    this.firstAudibleAt ??= this.firstScheduledAt;
  }

  #noteDry() {
    if (this.firstScheduledAt !== null && !this.#finished) this.underruns += 1;
  }

  #fail() {
    if (this.#over) return;
    this.#failure = new Error(`The browser could not play the sound: ${this.#audio.error.message || "unknown format"}.`);
    this.#end.reject(this.#failure);
    this.#discard();
    this.#close();
  }

  #discard() {
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#roomIsFree?.();
  }

  #close() {
    this.#over = true;
    URL.revokeObjectURL(this.#url);
    this.#end.resolve();
  }
}
