// Faults in the Talk tab, as a user meets them: a reason, a way on, and a microphone that is free.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMIT, OTHER_NAME, openPage } from "./browsers.mjs";
import { textOf, untilText } from "./pilot.mjs";
import { captionsOf, converse, countTracks, openTalk, startTalking, tracksOf, untilCaptions, untilTalk } from "./talk-pilot.mjs";

export function talkFaultTests(setting) {
  test("a refused conversation says what may be the cause, and can be tried again", LIMIT, () => refused(setting));
  test("a key is asked for to talk, and used", LIMIT, () => asksForKey(setting));
  test("a key that no WebSocket can carry says so", LIMIT, () => badKey(setting));
  test("models that do not load end the conversation with the reason", LIMIT, () => notLoaded(setting));
  test("settings that hob rejects end the conversation with the reason", LIMIT, () => badSettings(setting));
  test("a connection that breaks ends the conversation, and its captions stay", LIMIT, () => lost(setting));
  test("hob's reason to end a conversation is shown", LIMIT, () => dismissed(setting));
  test("an error event is shown, and the conversation goes on", LIMIT, () => errorEvent(setting));
  test("an answer that fails says so", LIMIT, () => failedAnswer(setting));
  test("speech that cannot be transcribed says so", LIMIT, () => failedTranscript(setting));
  test("an answer that was interrupted before its first sound says so", LIMIT, () => interruptedEarly(setting));
  test("a connection that is too slow ends the conversation", LIMIT, () => tooSlow(setting));
  test("an endless answer is ended", LIMIT, () => endless(setting));
  test("captions have a limit", LIMIT, () => bounded(setting));
  for (const [name, message] of REFUSALS) test(`a conversation whose microphone fails with ${name} has a sentence`, LIMIT, () => noMicrophone(setting, name, message));
  test("a user who leaves while the browser asks has no open microphone", LIMIT, () => leavesEarly(setting));
  test("a microphone that is unplugged ends the conversation", LIMIT, () => unplugged(setting));
  test("a muted microphone says so", LIMIT, () => muted(setting));
  test("a user who is silent has no muted microphone", LIMIT, () => quiet(setting));
  test("over plain HTTP in a network, the page says how to talk", LIMIT, () => insecure(setting));
  test("without a chat model the page says how to get one", LIMIT, () => noModel(setting));
}

const REFUSALS = [
  ["NotAllowedError", /^The browser does not let this page use the microphone\./],
  ["NotFoundError", /^The browser finds no microphone\./],
];

/** The conversation has ended, with this reason and without an open microphone. */
async function endsWith(page, message) {
  await untilTalk(page, "ended");
  await untilText(page, "#talk-error-text", message);
  assert.ok((await tracksOf(page)).every((state) => state === "ended"), "the microphone is free");
  assert.equal(await textOf(page, "#talk-toggle-text"), "Start talking");
  assert.equal(await textOf(page, "#talk-again"), "Try again");
}

async function refused(setting) {
  const { page } = await openTalk(setting);
  setting.mock.talkRefuses = true;
  await countTracks(page);
  await page.click("#talk-toggle");
  await endsWith(page, /^hob did not open the conversation\. It may already run as many conversations as it allows/);
  setting.mock.talkRefuses = false;
  await startTalking(setting, page, "#talk-again");
  await untilTalk(page, "talking");
  assert.equal(await textOf(page, "#talk-error"), "");
  assert.equal(await page.evaluate(() => document.activeElement.id), "talk-toggle");
  await page.close();
}

async function asksForKey(setting) {
  const { page } = await openTalk(setting);
  setting.mock.talkKey = "sesame";
  await countTracks(page);
  await page.click("#talk-toggle");
  await endsWith(page, /^This hob wants an API key\.$/);
  await page.type("#key", "sesame");
  await startTalking(setting, page, "#talk-again");
  await untilTalk(page, "talking");
  setting.mock.talkKey = null;
  await page.close();
}

async function badKey(setting) {
  const { page } = await openTalk(setting);
  await page.evaluate(() => sessionStorage.setItem("hob.apiKey", "a/b=="));
  await countTracks(page);
  await page.click("#talk-toggle");
  await endsWith(page, /^This API key has a character that a browser cannot send/);
  await page.close();
}

async function notLoaded(setting) {
  setting.mock.talkWaits = true;
  const { page, conversation } = await converse(setting);
  setting.mock.talkWaits = false;
  await untilTalk(page, "loading");
  conversation.send({ type: "error", error: { type: "server_error", code: "model_load_error", message: "there is no transcription model", param: null, event_id: null } });
  conversation.close(1011, "a model of the session did not load");
  await endsWith(page, /^there is no transcription model$/);
  await page.close();
}

async function badSettings(setting) {
  setting.mock.talkWaits = true;
  const { page, conversation } = await converse(setting);
  setting.mock.talkWaits = false;
  await untilTalk(page, "loading");
  conversation.send({ type: "error", error: { type: "invalid_request_error", code: "voice_not_found", message: "there is no voice 'af_heart'", param: null, event_id: "settings" } });
  await endsWith(page, /^there is no voice 'af_heart'$/);
  await page.close();
}

async function lost(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears("Hello");
  conversation.answers("Good morning.", 3);
  await untilText(page, "#talk-status", /^Speaking/);
  conversation.close();
  await endsWith(page, /^The connection to hob broke, so the conversation has ended\.$/);
  assert.equal(await page.evaluate(() => window.hob.talk.isSpeaking), false);
  assert.deepEqual(await captionsOf(page), [["You:", "Hello", ""], ["hob:", "Good morning.", ""]]);
  await startTalking(setting, page, "#talk-again");
  await untilTalk(page, "talking");
  assert.deepEqual(await captionsOf(page), []);
  await page.close();
}

async function dismissed(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.close(1001, "this hob is stopping");
  await endsWith(page, /^hob ended the conversation: this hob is stopping\.$/);
  await page.close();
}

async function errorEvent(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.send({ type: "error", error: { type: "server_error", code: "busy", message: "the model is busy", param: null, event_id: null } });
  await untilText(page, "#talk-error-text", /^the model is busy$/);
  assert.equal(await textOf(page, "#talk-again"), "", "nothing to try again");
  await conversation.sentSound(conversation.pieces.length + 5);
  conversation.hears("Hello");
  conversation.answers("Good morning.", 0.3);
  await untilText(page, "#talk-status", /^Speaking/);
  assert.equal(await textOf(page, "#talk-error"), "");
  await page.close();
}

async function failedAnswer(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears("Hello");
  conversation.answers("Good", 0.3);
  conversation.endResponse({ status: "failed", status_details: { type: "failed", error: { type: "server_error", code: "x", message: "the model's process died" } } });
  await untilText(page, "#talk-error-text", /^The answer failed: the model's process died$/);
  assert.deepEqual(await captionsOf(page), [["You:", "Hello", ""], ["hob:", "Good", "Incomplete."]]);
  await untilText(page, "#talk-status", /^Listening\.$/);
  await page.close();
}

async function failedTranscript(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  const item_id = conversation.speechStarted();
  conversation.send({ type: "conversation.item.input_audio_transcription.failed", item_id, content_index: 0, error: { type: "server_error", code: "x", message: "no memory" } });
  await untilText(page, "#talk-lines", /no memory/);
  assert.deepEqual(await captionsOf(page), [["You:", "", "hob could not transcribe this: no memory"]]);
  await page.close();
}

async function interruptedEarly(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears("Hello");
  conversation.answers("Well", 0);
  conversation.speechStarted();
  conversation.send({ type: "response.done", response: { id: "resp_1", status: "cancelled", status_details: { type: "cancelled", reason: "turn_detected" }, output: [{ id: "item_hob_1" }] } });
  await untilText(page, "#talk-lines", /Interrupted\./);
  assert.deepEqual(await captionsOf(page), [["You:", "Hello", ""], ["hob:", "Well", "Interrupted."], ["You:", "…", ""]]);
  assert.deepEqual(conversation.received.map(({ type }) => type), ["session.update"]);
  await page.close();
}

async function tooSlow(setting) {
  const { page } = await openTalk(setting);
  await page.evaluate(() => {
    Object.defineProperty(WebSocket.prototype, "bufferedAmount", { get: () => window.unsent ?? 0 });
  });
  const conversation = await startTalking(setting, page);
  await conversation.sentSound(1);
  await page.evaluate(() => { window.unsent = 320_001; });
  await endsWith(page, /^The connection to hob is too slow for a conversation/);
  await page.close();
}

async function endless(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  conversation.hears("Hello");
  const at = conversation.answers("Well", 0);
  const minute = Buffer.alloc(60 * 48_000).toString("base64");
  for (let i = 0; i < 12; i++) conversation.send({ type: "response.output_audio.delta", ...at, delta: minute });
  await conversation.sent("response.cancel");
  await untilText(page, "#talk-lines", /This answer was too long, so the page ended it\./);
  assert.equal(conversation.received.filter(({ type }) => type === "response.cancel").length, 1);
  await page.close();
}

async function bounded(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  for (let i = 0; i < 210; i++) conversation.hears(`Line ${i}`);
  await untilText(page, "#talk-lines", /Line 209/);
  await untilCaptions(page, 200);
  conversation.hears("x".repeat(30_000));
  await untilText(page, "#talk-lines", /…$/);
  assert.equal((await captionsOf(page)).at(-1)[1].length, 20_000);
  await page.close();
}

async function noMicrophone(setting, name, message) {
  const { page } = await openTalk(setting);
  await page.evaluate((wanted) => {
    window.tracks = [];
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", wanted));
  }, name);
  await page.click("#talk-toggle");
  await endsWith(page, message);
  assert.match(await textOf(page, "#talk-status"), /^Speak with a model/);
  await page.close();
}

async function leavesEarly(setting) {
  const { page } = await openTalk(setting);
  await countTracks(page);
  await page.evaluate(() => {
    const { mediaDevices } = navigator;
    const original = mediaDevices.getUserMedia;
    const allowed = new Promise((resolve) => (window.allow = resolve));
    mediaDevices.getUserMedia = (wish) => allowed.then(() => original(wish));
  });
  await page.click("#talk-toggle");
  await untilText(page, "#talk-status", /^Waiting for the microphone\.$/);
  await page.click("#tab-chat");
  await page.evaluate(() => window.allow());
  await page.waitForFunction(() => window.tracks.length === 1 && window.tracks[0].readyState === "ended");
  await page.close();
}

async function unplugged(setting) {
  const { page, conversation } = await converse(setting);
  await conversation.sentSound(1);
  // A track that a page stops itself sends no event; one that is unplugged does.
  await page.evaluate(() => window.tracks[0].dispatchEvent(new Event("ended")));
  await endsWith(page, /^The microphone was disconnected/);
  await conversation.closed();
  await page.close();
}

async function muted(setting) {
  const { page } = await openTalk(setting);
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = async () => new AudioContext().createMediaStreamDestination().stream;
  });
  await startTalking(setting, page);
  await untilText(page, "#talk-status", /^No sound comes from the microphone\. Is it muted\?$/);
  await page.close();
}

async function quiet(setting) {
  const { page } = await openTalk(setting);
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      const context = new AudioContext();
      const tone = new OscillatorNode(context);
      const out = context.createMediaStreamDestination();
      tone.connect(out);
      tone.start();
      window.hush = () => tone.stop();
      return out.stream;
    };
  });
  await startTalking(setting, page);
  await page.waitForFunction(() => window.hob.talk.level > 0.5);
  await page.evaluate(() => window.hush());
  await page.waitForFunction(() => window.hob.talk.level === 0 && (window.silentAt ??= performance.now()) < performance.now() - 3_500);
  assert.equal(await textOf(page, "#talk-status"), "Listening.");
  assert.equal(await page.$eval("#talk-status", (status) => status.ariaLive), "off");
  await page.close();
}

async function insecure(setting) {
  const url = setting.url.replace("127.0.0.1", OTHER_NAME);
  const { page } = await openTalk(setting, undefined, url);
  assert.equal(await textOf(page, "#talk-toggle"), "", "no dead button");
  const said = await textOf(page, "#talk-no-microphone");
  for (const part of ["over HTTPS", "hob serve --tls"]) assert.ok(said.includes(part), `${part}: ${said}`);
  assert.ok(!said.includes("Files"), said);
  await page.close();
}

async function noModel(setting) {
  const { mock } = setting;
  const { models } = mock;
  mock.models = models.filter(({ hob }) => hob.kind !== "chat");
  const { page } = await openPage(setting, `${setting.url}#talk`);
  await untilText(page, "#talk-state", /^No chat model yet$/);
  mock.models = models;
  assert.match(await textOf(page, "#talk-no-model"), /hob pull smollm2/);
  assert.equal(await page.$eval("#talk-toggle", (button) => button.disabled), true);
  await page.close();
}
