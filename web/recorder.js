// Records the microphone, shows how loud it is, and says in plain words why a browser refuses.
// The browser compresses the sound, so an hour takes little memory.

// Two hours of speech at this rate have 58 MB, and hob takes files of 100 MiB.
const RECORDING_MAX_S = 2 * 3600;
const BITS_PER_SECOND = 64_000;
// The first that the browser can write. Firefox cannot seek in the WebM that it writes, but in its Ogg. Chromium writes
// WebM, and Safari only MP4.
const FORMATS = [["audio/ogg;codecs=opus", "ogg"], ["audio/webm;codecs=opus", "webm"], ["audio/mp4", "m4a"]];
const QUIETEST_DB = -60;
const WINDOW_SAMPLES = 1024;

/** Why this page cannot record, or null. */
export function whyNoMicrophone() {
  const port = location.port ? `:${location.port}` : "";
  if (!window.isSecureContext) {
    return `The browser gives the microphone only to pages of this computer, or over HTTPS. Open http://localhost${port} on the computer that runs hob. `
      + `From another one, run "ssh -L ${location.port || 80}:localhost:${location.port || 80} ${location.hostname}" and open http://localhost${port} there, or start hob with "hob serve --tls". Files work here, too.`;
  }
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) return "This browser cannot record. Files work here, too.";
  return null;
}

/** The names are empty until the browser has allowed the microphone once. @returns {Promise<{id: string, name: string}[]>} */
export async function listMicrophones() {
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.filter(({ kind, label }) => kind === "audioinput" && label).map(({ deviceId, label }) => ({ id: deviceId, name: label }));
}

export class Recorder {
  /** The file, when the recording has ended. */
  file;

  #stream;
  #recorder;
  #audio = new AudioContext();
  #source; // Firefox collects a node that only the graph refers to
  #analyser;
  #window = new Float32Array(WINDOW_SAMPLES);
  #startedAt = performance.now();

  /** Asks for the microphone. Must run inside the click or key press. Throws an Error with a sentence for the user. */
  static async start(deviceId) {
    const device = deviceId ? { deviceId: { ideal: deviceId } } : {};
    const audio = { ...device, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    try {
      return new Recorder(await navigator.mediaDevices.getUserMedia({ audio }));
    } catch (error) {
      throw new Error(REFUSALS[error.name] ?? `The microphone does not start: ${error.message}`);
    }
  }

  constructor(stream) {
    this.#stream = stream;
    this.#analyser = new AnalyserNode(this.#audio, { fftSize: WINDOW_SAMPLES });
    this.#source = this.#audio.createMediaStreamSource(stream);
    this.#source.connect(this.#analyser);
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
    this.#analyser.getFloatTimeDomainData(this.#window);
    const power = this.#window.reduce((sum, sample) => sum + sample * sample, 0) / WINDOW_SAMPLES;
    return Math.min(1, Math.max(0, 1 - (10 * Math.log10(power)) / QUIETEST_DB));
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

const REFUSALS = {
  NotAllowedError: "The browser does not let this page use the microphone. Allow it in the browser's settings for this page, then press Record again.",
  NotFoundError: "The browser finds no microphone. Connect one, then press Record again.",
  NotReadableError: "The microphone does not start. Another program may be using it.",
};

/** `recording 2026-11-25 14.07`. */
function fileName(now) {
  const two = (number) => String(number).padStart(2, "0");
  return `recording ${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())} ${two(now.getHours())}.${two(now.getMinutes())}`;
}
