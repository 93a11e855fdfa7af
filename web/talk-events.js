// What the server's events change in a conversation. Events that are not listed change nothing.

import { SETTINGS_ID } from "./talk-settings.js";

const NO_TURN_MODEL = "hob has no model that hears the end of a sentence, so a turn ends after half a second of silence. "
  + 'Run "hob pull smart-turn" to download one.';
const RECORDED = "This hob records the conversation on its disk.";
// The answer had just ended by itself.
const HARMLESS = "response_cancel_not_active";

/** @param {import("./talk.js").Talk} talk */
export function takeEvent(talk, event) {
  HANDLERS[event.type]?.(talk, event);
}

const HANDLERS = {
  "session.created": (talk, { session }) => {
    talk.isRecorded = session.recorded === true;
    if (talk.isRecorded) addNotice(talk, RECORDED);
    talk.configure("semantic_vad");
  },
  "session.updated": (talk) => (talk.state = "talking"),

  "input_audio_buffer.speech_started": (talk, { item_id: id }) => {
    talk.isUserSpeaking = true;
    talk.interrupt();
    talk.captions.open(id, "user");
  },
  "input_audio_buffer.speech_stopped": (talk) => (talk.isUserSpeaking = false),
  "conversation.item.input_audio_transcription.delta": ({ captions }, { item_id: id, delta }) => captions.add(id, "user", delta),
  "conversation.item.input_audio_transcription.completed": ({ captions }, { item_id: id, transcript }) => captions.close(id, "user", transcript),
  "conversation.item.input_audio_transcription.failed": ({ captions }, { item_id: id, error }) => {
    captions.cut(captions.open(id, "user"), `hob could not transcribe this: ${error.message}`);
  },

  "response.created": (talk) => {
    talk.isAnswering = true;
    talk.error = null;
  },
  "response.output_audio_transcript.delta": ({ captions }, { item_id: id, delta }) => captions.add(id, "hob", delta),
  "response.output_audio_transcript.done": ({ captions }, { item_id: id, transcript }) => captions.close(id, "hob", transcript),
  "response.output_audio.delta": (talk, event) => {
    if (!talk.captions.find(event.item_id)?.isCut) talk.play(event);
  },
  "response.output_audio.done": (talk, event) => talk.finishAnswer(event),
  "response.done": (talk, { response }) => endResponse(talk, response),

  "hob.turn_stages": (talk, { stages_ms: stages }) => (talk.stages = stages),
  error: (talk, { error }) => fail(talk, error),
};

function endResponse(talk, { status, status_details: details, output }) {
  talk.isAnswering = false;
  if (status === "failed") talk.error = new Error(`The answer failed: ${details?.error?.message ?? "hob gives no reason."}`);
  const note = NOTES[details?.reason] ?? NOTES[status];
  for (const { id } of output ?? []) {
    const line = talk.captions.find(id);
    if (line && note) talk.captions.cut(line, note);
    talk.finishAnswer({ item_id: id });
  }
}

const NOTES = {
  turn_detected: "Interrupted.",
  max_output_tokens: "Cut off: the token limit was reached.",
  failed: "Incomplete.",
};

function addNotice(talk, notice) {
  talk.notice = [talk.notice, notice].filter(Boolean).join(" ");
}

function fail(talk, error) {
  if (error.code === HARMLESS) return;
  if (error.code === "turn_model_missing") {
    addNotice(talk, NO_TURN_MODEL);
    return talk.configure("server_vad");
  }
  const said = new Error(error.message);
  if (error.event_id === SETTINGS_ID) talk.end(said);
  else talk.error = said;
}
