// Records the microphone to a file, and shows how loud it is.
// The browser compresses the sound, so an hour takes little memory.

import { LevelMeter } from "./level-meter.js";
import { openMicrophone, whyNoMicrophone } from "./microphone.js";

// Two hours of speech at this rate have 58 MB, and hob takes files of 100 MiB.
const RECORDING_MAX_S = 2 * 3600;
const BITS_PER_SECOND = 64_000;
// The first that the browser can write. Firefox cannot seek in the WebM that it writes, but in its Ogg. Chromium writes
// WebM, and Safari only MP4.
const FORMATS = [["audio/ogg;codecs=opus", "ogg"], ["audio/webm;codecs=opus", "webm"], ["audio/mp4", "m4a"]];

/** Why this page cannot record, or null. */
export function whyNoRecording() {
  const why = whyNoMicrophone() ?? (window.MediaRecorder ? null : "This browser cannot record.");
  return why && `${why} Files work here, too.`;
}

export class Recorder {
  /** The file, when the recording has ended. */
  file;

  #stream;
  #recorder;
  #audio = new AudioContext();
  #source; // Firefox collects a node that only the graph refers to
  #meter;
  #startedAt = performance.now();

  /** Asks for the microphone. Must run inside the click or key press. Throws an Error with a sentence for the user. */
  static async start(deviceId) {
    return new Recorder(await openMicrophone(deviceId));
  }

  constructor(stream) {
    this.#stream = stream;
    this.#source = this.#audio.createMediaStreamSource(stream);
    this.#meter = new LevelMeter(this.#source);
    this.#audio.resume();
    const [mimeType, extension] = FORMATS.find(([type]) => MediaRecorder.isTypeSupported(type)) ?? ["", "webm"];
    this.#recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
    this.file = this.#record(extension);
  }

  get seconds() {
    return (performance.now() - this.#startedAt) / 1000;
  }

  /** Loudness from 0 to 1, as a meter shows it. */
  get level() {
    return this.#meter.level;
  }

  /** Ends the recording; its file is complete a moment later. */
  stop() {
    if (this.#recorder.state !== "inactive") this.#recorder.stop();
  }

  #record(extension) {
    const pieces = [];
    const limit = setTimeout(() => this.stop(), RECORDING_MAX_S * 1000);
    this.#recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
    this.#recorder.start();
    return new Promise((resolve) => {
      // Also when the microphone was unplugged.
      this.#recorder.addEventListener("stop", () => {
        clearTimeout(limit);
        for (const track of this.#stream.getTracks()) track.stop();
        this.#audio.close();
        const type = this.#recorder.mimeType.split(";")[0];
        resolve(new File(pieces, `${fileName(new Date())}.${extension}`, { type }));
      });
    });
  }
}

/** `recording 2026-11-25 14.07`. */
function fileName(now) {
  const two = (number) => String(number).padStart(2, "0");
  return `recording ${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())} ${two(now.getHours())}.${two(now.getMinutes())}`;
}
