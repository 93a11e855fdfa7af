// One spoken conversation with hob: the microphone, the WebSocket, the answer that plays, and the captions.
// Nothing here draws. `onChange` is called after each change.

import { openConversation, whyNoConversation } from "./api.js";
import { toBase64 } from "./base64.js";
import { Captions } from "./captions.js";
import { openAudioClock } from "./player-pcm.js";
import { SpokenAnswer } from "./spoken-answer.js";
import { takeEvent } from "./talk-events.js";
import { settingsEvent } from "./talk-settings.js";
import { VoiceInput } from "./voice-input.js";

// About 5 s of sound in base64. Speech that arrives later than this makes no conversation.
const UNSENT_MAX_BYTES = 320_000;

export class Talk {
  /** asking (for the microphone) → connecting → loading → talking → ended */
  state = "asking";
  /** Why it ended, if the user did not end it; or what last went wrong. */
  error = null;
  /** What the user should know, without being an error. */
  notice = "";
  /** Whether hob writes the conversation to its disk. */
  isRecorded = false;
  captions = new Captions();
  /** Milliseconds of the last turn's stages, or null. */
  stages = null;
  isUserSpeaking = false;
  isAnswering = false;

  #wish;
  #onChange;
  #socket = null;
  #input = null;
  #microphonesAsked = 0;
  #answer = null;

  /** @param {{model: string, voice: string}} wish an empty voice is the server's default */
  constructor(wish, onChange) {
    this.#wish = wish;
    this.#onChange = onChange;
  }

  get active() {
    return this.state !== "ended";
  }

  /** Whether an answer sounds. */
  get isSpeaking() {
    return this.#answer?.active ?? false;
  }

  /** Milliseconds of the last answer that have left the loudspeaker. */
  get heardMs() {
    return this.#answer?.heardMs ?? 0;
  }

  /** Loudness of the microphone, from 0 to 1. */
  get level() {
    return this.#input?.level ?? 0;
  }

  /** Must run inside the click or key press: the browser asks for the microphone, and the sound starts. */
  async start(microphone) {
    if (!openAudioClock()) return this.end(new Error("This browser cannot play the sound of a conversation."));
    await this.useMicrophone(microphone);
    if (!this.active) return;
    this.state = "connecting";
    this.#connect();
    this.#onChange();
  }

  /** Also while the conversation runs. */
  async useMicrophone(device) {
    const asked = ++this.#microphonesAsked;
    this.#input?.stop();
    this.#input = null;
    const onPiece = (bytes) => this.#hear(bytes);
    const onLost = () => this.end(new Error("The microphone was disconnected, so the conversation has ended."));
    try {
      const input = await VoiceInput.start(device, { onPiece, onLost });
      // The user may have left, or chosen again, while the browser asked.
      if (this.active && asked === this.#microphonesAsked) this.#input = input;
      else input.stop();
    } catch (error) {
      this.end(error);
    }
  }

  /** Frees the microphone, and stops the sound. */
  end(error = null) {
    if (!this.active) return;
    this.state = "ended";
    this.error = error ?? this.error;
    this.isUserSpeaking = this.isAnswering = false;
    this.#input?.stop();
    if (this.isSpeaking) this.#answer.stop();
    this.#socket?.close();
    this.captions.end();
    this.#onChange();
  }

  /** @param {object} event for the server */
  send(event) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (this.#socket.bufferedAmount > UNSENT_MAX_BYTES) {
      return this.end(new Error("The connection to hob is too slow for a conversation: 5 s of speech wait to be sent."));
    }
    this.#socket.send(JSON.stringify(event));
  }

  /** @param {"semantic_vad"|"server_vad"} turnDetection */
  configure(turnDetection) {
    this.send(settingsEvent(turnDetection, this.#wish.voice));
  }

  /** Plays a piece of an answer. */
  play(event) {
    if (this.#answer?.itemId !== event.item_id) this.#beginAnswer(event);
    this.#answer.feed(event.delta);
    if (!this.#answer.isFull) return;
    this.send({ type: "response.cancel" });
    this.#answer.finish();
    this.captions.cut(this.captions.open(event.item_id, "hob"), "This answer was too long, so the page ended it.");
  }

  finishAnswer({ item_id: itemId }) {
    if (this.#answer?.itemId === itemId) this.#answer.finish();
  }

  /** The user speaks while an answer plays: it stops at once, and hob learns how much of it was heard. */
  interrupt() {
    if (this.isSpeaking) this.#cutAnswer();
    // The clock rests after a silence, and must run when the next answer comes.
    openAudioClock();
  }

  #cutAnswer() {
    const { itemId: item_id, contentIndex: content_index } = this.#answer;
    const audio_end_ms = this.#answer.stop();
    this.send({ type: "conversation.item.truncate", item_id, content_index, audio_end_ms });
    this.captions.cut(this.captions.open(item_id, "hob"), `Interrupted after ${(audio_end_ms / 1000).toFixed(1)} s.`);
  }

  #beginAnswer(event) {
    if (this.isSpeaking) this.#answer.stop();
    this.#answer = new SpokenAnswer(event, this.#onChange);
  }

  #hear(bytes) {
    if (this.state === "talking") this.send({ type: "input_audio_buffer.append", audio: toBase64(bytes) });
  }

  #connect() {
    try {
      this.#socket = openConversation(this.#wish.model);
    } catch (error) {
      return this.end(error);
    }
    this.#socket.onopen = () => this.#become("loading");
    this.#socket.onclose = (event) => this.#onClosed(event);
    this.#socket.onmessage = ({ data }) => {
      if (!this.active) return;
      takeEvent(this, JSON.parse(data));
      this.#onChange();
    };
  }

  #become(state) {
    if (!this.active) return;
    this.state = state;
    this.#onChange();
  }

  async #onClosed({ reason }) {
    if (!this.active) return;
    if (this.state === "connecting") return this.end(await whyNoConversation(this.#wish.model));
    // An error event that came just before says more than the end of the connection.
    if (this.state === "loading" && this.error) return this.end();
    this.end(new Error(reason ? `hob ended the conversation: ${reason}.` : "The connection to hob broke, so the conversation has ended."));
  }
}
