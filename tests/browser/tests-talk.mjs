// The Talk tab where all goes well: a turn with captions and sound, an interruption, and the settings that are sent.
// Browsers' fake microphones beep. The mock hears nothing, so tests say when a user speaks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, WIDTHS_PX, inTheDark } from "./browsers.mjs";
import { checkAccessibility, checkLayout, shoot } from "./looks.mjs";
import { textOf, untilText } from "./pilot.mjs";
import { captionsOf, converse, openTalk, startTalking, tracksOf, untilCaptions, untilHeardMs, untilTalk } from "./talk-pilot.mjs";

const QUESTION = "What is on the stove?";
const ANSWER = "The kettle is on. Sit down.";
const STAGES = [
  ["end of speech", "210 ms"], ["transcript", "95 ms"], ["first words", "140 ms"], ["first sentence", "60 ms"], ["first sound", "120 ms"], ["sending", "5 ms"],
];

export function talkTests(setting) {
  test("a conversation sends its settings, then the microphone's sound", LIMIT, () => settings(setting));
  test("a turn has captions of both sides, sound, and the times of its stages", LIMIT, () => turn(setting));
  test("text of a caption appears as it comes, and screen readers wait for all of it", LIMIT, () => captions(setting));
  test("speech stops the answer at once, and hob learns what was heard", LIMIT, () => bargeIn(setting));
  test("an answer that was heard to its end is not truncated", LIMIT, () => heardToTheEnd(setting));
  test("noise leaves no caption", LIMIT, () => noise(setting));
  test("the page says while the models load", LIMIT, () => loading(setting));
  test("without a model that judges turns, silence ends them", LIMIT, () => withoutJudge(setting));
  test("a key is sent as a subprotocol", LIMIT, () => key(setting));
  test("model, voice and microphone of a conversation are remembered", LIMIT, () => remembers(setting));
  test("another microphone takes over while the conversation runs", LIMIT, () => otherMicrophone(setting));
  test("Esc ends a conversation, and the keyboard starts one", LIMIT, () => keyboard(setting));
  test("leaving the tab ends the conversation and frees the microphone", LIMIT, () => leaves(setting));
  test("closing the page ends the conversation", LIMIT, () => closes(setting));
  test("the microphone's sound keeps its pitch and level at another rate", LIMIT, () => resamples(setting));
  test("what axe can see of the Talk tab is in order", LIMIT, () => accessible(setting));
  for (const width of WIDTHS_PX) test(`the Talk tab looks whole at ${width} px`, LIMIT, () => looksWhole(setting, width));
  test("the Talk tab looks whole in the dark", LIMIT, () => inTheDark(setting, looksWhole));
}

async function settings(setting) {
  const { page, complaints, conversation } = await converse(setting);
  const { event_id: id, session } = await conversation.sent("session.update");
  const { instructions, ...rest } = session;
  const format = { type: "audio/pcm", rate: 24_000 };
  assert.equal(id, "settings");
  assert.match(instructions, /without lists/);
  assert.deepEqual(rest, {
    type: "realtime",
    output_modalities: ["audio"],
    audio: {
      input: { format, transcription: { model: "whisper-1" }, turn_detection: { type: "semantic_vad" } },
      output: { format, voice: "af_heart" },
    },
    include: ["hob.turn_stages"],
  });
  assert.equal(conversation.url, "/v1/realtime?model=small");
  assert.deepEqual(conversation.protocols, ["realtime"]);
  // The fake microphones beep once a second.
  const from = performance.now();
  await conversation.sentSound(50);
  const tookMs = performance.now() - from;
  assert.ok(tookMs > 1_000, `50 pieces of 40 ms in ${tookMs} ms`);
  assert.deepEqual([...new Set(conversation.pieces.map(({ length }) => length))], [1_920]);
  const samples = new Int16Array(new Uint8Array(Buffer.concat(conversation.pieces)).buffer);
  assert.ok(samples.some((sample) => Math.abs(sample) > 1_000), "the beep arrives");
  const asked = await page.evaluate(() => window.asked);
  assert.equal(asked.echoCancellation, true);
  await page.waitForFunction(() => new DOMMatrix(getComputedStyle(document.querySelector("#talk-level i")).transform).a > 0.2);
  assert.equal(await textOf(page, "#talk-status"), "Listening.");
  assert.deepEqual(complaints, []);
  await page.close();
}

async function turn(setting) {
  const { page, complaints, conversation } = await converse(setting);
  await conversation.sentSound(1);
  const item = conversation.speechStarted();
  await untilText(page, "#talk-status", /^Hearing you\.$/);
  conversation.hears(QUESTION, item);
  conversation.answers(ANSWER, 1.5);
  await untilText(page, "#talk-status", /^Speaking\. Talk to interrupt\.$/);
  conversation.endAnswer(ANSWER);
  await untilCaptions(page, 2);
  assert.deepEqual(await captionsOf(page), [["You:", QUESTION, ""], ["hob:", ANSWER, ""]]);
  await untilHeardMs(page, 500);
  await untilText(page, "#talk-status", /^Listening\.$/);
  const { heardMs } = await page.evaluate(() => ({ heardMs: window.hob.talk.heardMs }));
  assert.ok(heardMs > 1_300 && heardMs <= 1_500, `${heardMs} ms`);
  assert.equal(await textOf(page, "#talk-stages-title"), "Last turn: 630 ms from your last word to the first sound");
  const listed = await page.$$eval("#talk-stage-list > div", (all) => all.map((entry) => [entry.querySelector("dt").textContent, entry.querySelector("dd").textContent]));
  assert.deepEqual(listed, STAGES);
  const widths = await page.$$eval("#talk-bar i", (all) => all.map((part) => part.getBoundingClientRect().width));
  assert.ok(widths[0] > widths[2] && widths[2] > widths[1] && widths[5] < 20, widths.join(" "));
  // All sound was played in one go.
  conversation.hears("And now?");
  conversation.answers("Tea.", 0.3);
  conversation.endAnswer("Tea.");
  await untilCaptions(page, 4);
  assert.equal(conversation.received.filter(({ type }) => type === "conversation.item.truncate").length, 0);
  assert.deepEqual(complaints, []);
  await page.click("#talk-toggle");
  await conversation.closed();
  assert.deepEqual(await tracksOf(page), ["ended"]);
  assert.equal(await textOf(page, "#talk-status"), "The conversation has ended. hob forgets it.");
  await page.close();
}

async function captions(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  const item_id = conversation.speechStarted();
  await untilCaptions(page, 1);
  assert.deepEqual(await captionsOf(page), [["You:", "…", ""]]);
  conversation.send({ type: "conversation.item.input_audio_transcription.delta", item_id, content_index: 0, delta: "What is" });
  await untilText(page, "#talk-lines", /^You:What is$/);
  const busy = () => page.$$eval("#talk-lines li", (all) => all.map((line) => line.ariaBusy));
  assert.deepEqual(await busy(), ["true"]);
  conversation.send({ type: "conversation.item.input_audio_transcription.completed", item_id, content_index: 0, transcript: " What is it? " });
  await untilText(page, "#talk-lines", /^You:What is it\?$/);
  assert.deepEqual(await busy(), ["false"]);
  await page.close();
}

async function bargeIn(setting) {
  const { page, complaints, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears(QUESTION);
  const { item_id } = conversation.answers(ANSWER, 3);
  await untilHeardMs(page, 700);
  conversation.speechStarted();
  const truncated = await conversation.sent("conversation.item.truncate");
  const { audio_end_ms: heardMs, ...rest } = truncated;
  assert.deepEqual(rest, { type: "conversation.item.truncate", item_id, content_index: 0 });
  assert.ok(heardMs >= 700 && heardMs < 2_900, `${heardMs} ms`);
  assert.equal(await page.evaluate(() => window.hob.talk.isSpeaking), false);
  // What was on its way when the user spoke stays silent.
  conversation.send({ type: "response.output_audio.delta", response_id: "resp_1", item_id, output_index: 0, content_index: 0, delta: "AAAA" });
  conversation.send({ type: "response.done", response: { id: "resp_1", status: "cancelled", status_details: { type: "cancelled", reason: "turn_detected" }, output: [{ id: item_id }] } });
  await untilText(page, "#talk-status", /^Hearing you\.$/);
  assert.deepEqual(await captionsOf(page), [["You:", QUESTION, ""], ["hob:", ANSWER, `Interrupted after ${(heardMs / 1000).toFixed(1)} s.`], ["You:", "…", ""]]);
  // The next answer sounds.
  conversation.hears("Stop.", "item_user_2");
  conversation.answers("Gladly.", 0.5);
  conversation.endAnswer("Gladly.");
  await untilHeardMs(page, 400);
  assert.deepEqual(complaints, []);
  await page.close();
}

async function heardToTheEnd(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears(QUESTION);
  conversation.answers(ANSWER, 0.3);
  conversation.endAnswer(ANSWER);
  await untilText(page, "#talk-status", /^Speaking/);
  await untilText(page, "#talk-status", /^Listening\.$/);
  conversation.hears("Thanks.");
  await untilCaptions(page, 3);
  assert.deepEqual(conversation.received.map(({ type }) => type), ["session.update"]);
  assert.equal((await captionsOf(page))[1][2], "");
  await page.close();
}

async function noise(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  const item_id = conversation.speechStarted();
  await untilCaptions(page, 1);
  conversation.send({ type: "conversation.item.input_audio_transcription.completed", item_id, content_index: 0, transcript: "" });
  await untilCaptions(page, 0);
  await page.close();
}

async function loading(setting) {
  setting.mock.talkWaits = true;
  const { page, conversation } = await converse(setting);
  setting.mock.talkWaits = false;
  await untilText(page, "#talk-status", /^Waiting for the models to load\.$/);
  assert.equal(conversation.pieces.length, 0);
  conversation.begin();
  await untilTalk(page, "talking");
  await conversation.sentSound(1);
  await page.close();
}

async function withoutJudge(setting) {
  Object.assign(setting.mock, { talkJudges: false, talkRecords: true });
  const { page, conversation } = await converse(setting);
  await untilTalk(page, "talking");
  Object.assign(setting.mock, { talkJudges: true, talkRecords: false });
  const types = conversation.received.map(({ session }) => session.audio.input.turn_detection.type);
  assert.deepEqual(types, ["semantic_vad", "server_vad"]);
  await untilText(page, "#talk-notice", /records the conversation.*hob pull smart-turn/);
  assert.equal(await textOf(page, "#talk-error"), "");
  conversation.hears(QUESTION);
  await untilText(page, "#talk-lines", /^You:What is on the stove\?$/);
  await page.click("#talk-toggle");
  await untilText(page, "#talk-status", /^The conversation has ended\. Its recording is on hob's disk\.$/);
  await page.close();
}

async function key(setting) {
  const { page } = await openTalk(setting);
  await page.evaluate(() => sessionStorage.setItem("hob.apiKey", "sesame"));
  setting.mock.talkKey = "sesame";
  const conversation = await startTalking(setting, page);
  await untilTalk(page, "talking");
  setting.mock.talkKey = null;
  assert.deepEqual(conversation.protocols, ["realtime", "openai-insecure-api-key.sesame"]);
  await page.close();
}

async function remembers(setting) {
  const { page } = await openTalk(setting);
  await severalMicrophones(page);
  await page.select("#talk-model", "thinker");
  await page.select("#talk-voice", "bf_emma");
  let conversation = await startTalking(setting, page);
  assert.equal(conversation.url, "/v1/realtime?model=thinker");
  assert.equal((await conversation.sent("session.update")).session.audio.output.voice, "bf_emma");
  await page.waitForSelector("#talk-microphone-field:not([hidden])");
  await page.select("#talk-microphone", "headset");
  await page.click("#talk-toggle");
  await page.reload();
  await page.waitForSelector("#talk-model:not(:disabled)");
  await page.waitForSelector("#talk-voice:not(:disabled)");
  await severalMicrophones(page);
  await page.evaluate(() => navigator.mediaDevices.dispatchEvent(new Event("devicechange")));
  await page.waitForSelector("#talk-microphone-field:not([hidden])");
  conversation = await startTalking(setting, page);
  assert.equal(conversation.url, "/v1/realtime?model=thinker");
  assert.equal((await conversation.sent("session.update")).session.audio.output.voice, "bf_emma");
  assert.deepEqual(await page.evaluate(() => window.asked.deviceId), { ideal: "headset" });
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

/** Both browsers, with the same two microphones. */
function severalMicrophones(page) {
  return page.evaluate(() => {
    navigator.mediaDevices.enumerateDevices = async () => ["Desk", "Headset"].map((label) => ({ kind: "audioinput", label, deviceId: label.toLowerCase() }));
  });
}

async function otherMicrophone(setting) {
  const { page } = await openTalk(setting);
  await severalMicrophones(page);
  const conversation = await startTalking(setting, page);
  await conversation.sentSound(1);
  await page.waitForSelector("#talk-microphone-field:not([hidden])");
  await page.select("#talk-microphone", "headset");
  await page.waitForFunction(() => window.tracks.length === 2);
  assert.deepEqual(await tracksOf(page), ["ended", "live"]);
  const before = conversation.pieces.length;
  await conversation.sentSound(before + 10);
  await page.evaluate(() => localStorage.clear());
  await page.close();
}

async function keyboard(setting) {
  const { page } = await openTalk(setting);
  await page.focus("#talk-toggle");
  const conversation = await startTalking(setting, page, "#talk-toggle");
  await untilTalk(page, "talking");
  assert.match(await textOf(page, "#talk-toggle"), /^End\s+Esc$/);
  await page.keyboard.press("Escape");
  await conversation.closed();
  assert.equal(await page.evaluate(() => document.activeElement.id), "talk-toggle");
  await page.keyboard.press("Enter");
  await untilTalk(page, "talking");
  await page.close();
}

async function leaves(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears(QUESTION);
  conversation.answers(ANSWER, 3);
  await untilText(page, "#talk-status", /^Speaking/);
  await page.click("#tab-chat");
  await conversation.closed();
  assert.deepEqual(await tracksOf(page), ["ended"]);
  assert.equal(await page.evaluate(() => window.hob.talk.isSpeaking), false);
  await page.click("#tab-talk");
  assert.deepEqual(await captionsOf(page), [["You:", QUESTION, ""], ["hob:", ANSWER, ""]]);
  await page.close();
}

async function closes(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  await page.close();
  await conversation.closed();
}

async function resamples(setting) {
  const { page } = await openTalk(setting);
  const seen = await page.evaluate(async () => {
    const { Resampler } = await import("/resampler.js");
    const rms = (samples) => Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
    const result = [];
    for (const fromHz of [16_000, 24_000, 44_100, 48_000, 96_000]) {
      for (const toneHz of [440, 3_000, 15_000].filter((hz) => hz < fromHz / 2)) {
        const resampler = new Resampler(fromHz, 24_000);
        const input = Float32Array.from({ length: fromHz }, (_, i) => Math.sin((2 * Math.PI * toneHz * i) / fromHz));
        const output = [];
        for (let at = 0; at < input.length; at += 128) output.push(...resampler.push(input.subarray(at, at + 128)));
        const body = output.slice(1_000, 23_000);
        const expected = body.map((_, i) => Math.sin((2 * Math.PI * toneHz * (i + 1_000)) / 24_000));
        const error = rms(body.map((sample, i) => sample - expected[i]));
        result.push({ fromHz, toneHz, samples: output.length, level: rms(body), error });
      }
    }
    return result;
  });
  for (const { fromHz, toneHz, samples, level, error } of seen) {
    const label = `${toneHz} Hz at ${fromHz} Hz: ${samples} samples, level ${level}, error ${error}`;
    assert.ok(samples > 23_900 && samples <= 24_000, label);
    // 24 kHz carries up to 12 kHz.
    if (toneHz > 12_000) assert.ok(level < 0.01, label);
    else assert.ok(Math.abs(level - Math.SQRT1_2) < 0.005 && error < 0.01, label);
  }
  await page.close();
}

async function accessible(setting) {
  const { page, conversation } = await converse(setting);
  await inMidConversation(page, conversation);
  await checkAccessibility(page);
  await page.close();
  const { page: before } = await openTalk(setting);
  await checkAccessibility(before);
  await before.close();
}

async function inMidConversation(page, conversation) {
  await conversation.sentSound(1);
  conversation.hears(QUESTION);
  conversation.answers(ANSWER, 3);
  conversation.endAnswer(ANSWER);
  await untilHeardMs(page, 300);
  conversation.hears("And where is the cat?");
  conversation.answers("The cat is out, and it comes back when it likes. Its dish is full, so do not worry about it.", 3);
  await untilCaptions(page, 4);
  await untilHeardMs(page, 300);
}

async function looksWhole(setting, width) {
  const { scheme } = setting;
  const { page, complaints, conversation } = await converse(setting, { width, height: 900 });
  await inMidConversation(page, conversation);
  await shoot(page, `talk-${setting.name}-${scheme}-${width}`);
  await checkLayout(page, setting);
  assert.deepEqual(complaints, []);
  await page.close();
}
