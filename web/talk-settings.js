// What the page asks of hob for a conversation, in the words of OpenAI's Realtime API.

import { SAMPLE_RATE_HZ } from "./pcm.js";

/** The id of the event with the settings, which an error about them repeats. */
export const SETTINGS_ID = "settings";

const INSTRUCTIONS = "This is a spoken conversation. Answer in one to three short sentences, as people speak, without lists and without Markdown.";
const FORMAT = { type: "audio/pcm", rate: SAMPLE_RATE_HZ };
// OpenAI's name for the default model of every hob.
const TRANSCRIPTION = { model: "whisper-1" };

/** @param {"semantic_vad"|"server_vad"} turnDetection @param {string} voice an empty one is the server's default */
export function settingsEvent(turnDetection, voice) {
  const input = { format: FORMAT, transcription: TRANSCRIPTION, turn_detection: { type: turnDetection } };
  const output = { format: FORMAT, ...(voice && { voice }) };
  const session = { type: "realtime", instructions: INSTRUCTIONS, output_modalities: ["audio"], audio: { input, output }, include: ["hob.turn_stages"] };
  return { type: "session.update", event_id: SETTINGS_ID, session };
}
