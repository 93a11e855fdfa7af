// The microphone as a stream of PCM pieces for hob, while a conversation runs.
// The device keeps its own rate. The audio worklet resamples, because Firefox cannot connect a microphone to another rate.

import { LevelMeter } from "./level-meter.js";
import { openMicrophone } from "./microphone.js";

export class VoiceInput {
  #stream;
  #context;
  #source; // Firefox collects a node that only the graph refers to
  #meter;

  /**
   * Asks for the microphone. Must run inside the click or key press. Throws an Error with a sentence for the user.
   * @param {{onPiece: (bytes: Uint8Array) => void, onLost: () => void}} listeners `onLost`: the device was unplugged
   */
  static async start(deviceId, listeners) {
    const context = new AudioContext(); // before the first wait: browsers start it only in the click
    try {
      const stream = await openMicrophone(deviceId);
      const input = new VoiceInput(context, stream);
      await input.#listen(listeners);
      return input;
    } catch (error) {
      context.close();
      throw error;
    }
  }

  constructor(context, stream) {
    this.#context = context;
    this.#stream = stream;
    this.#source = context.createMediaStreamSource(stream);
    this.#meter = new LevelMeter(this.#source);
  }

  /** Loudness from 0 to 1, as a meter shows it. */
  get level() {
    return this.#meter.level;
  }

  stop() {
    for (const track of this.#stream.getTracks()) track.stop();
    if (this.#context.state !== "closed") this.#context.close();
  }

  async #listen({ onPiece, onLost }) {
    try {
      this.#context.resume().catch(() => {}); // stays open for ever without a sound device
      await this.#context.audioWorklet.addModule("voice-input-worklet.js");
    } catch (error) {
      this.stop();
      throw error;
    }
    const mono = { channelCount: 1, channelCountMode: "explicit" };
    const node = new AudioWorkletNode(this.#context, "voice-input", mono);
    node.port.onmessage = ({ data }) => onPiece(new Uint8Array(data));
    // Its output is silence. A node without a way to the loudspeaker would not run.
    this.#source.connect(node).connect(this.#context.destination);
    // Not `addEventListener`: Firefox does not call such a listener of a track.
    for (const track of this.#stream.getTracks()) track.onended = onLost;
  }
}
