// The mock's chat model: the prompt says what it answers and how it fails.
// `[say]` is followed by the answer's text; `[think]`, `[stall]`, `[error]`, … choose how it comes.

import { event, inOddPieces, refuse, stall } from "./mock.mjs";

const ANSWER = "The kettle is **on**. Sit down, and let the house do the rest: ☕ included.";
const THOUGHT = "They are cold. A kettle helps.";

export const MODELS = [
  { id: "kokoro", hob: { kind: "speech", state: "warm", capabilities: ["speech"] } },
  { id: "untuned", hob: { kind: "chat", state: "warm", capabilities: ["completion", "embedding"] } },
  { id: "small", hob: { kind: "chat", state: "warm", capabilities: ["chat"] } },
  { id: "whisper-base", hob: { kind: "transcription", state: "warm", capabilities: ["transcription"], languages: ["en", "de", "fr"] } },
  { id: "whisper-tiny.en", hob: { kind: "transcription", state: "cold", capabilities: ["transcription"], languages: ["en"] } },
  { id: "thinker", hob: { kind: "chat", state: "cold", capabilities: ["chat", "thinking", "tools"] } },
].map((entry) => ({ object: "model", created: 1793491200, owned_by: "hob", ...entry }));

export const USAGE = {
  prompt_tokens: 45,
  completion_tokens: 41,
  total_tokens: 86,
  prompt_tokens_details: { cached_tokens: 30 },
  completion_tokens_details: { reasoning_tokens: 0 },
};
export const TIMINGS = {
  prompt_n: 15, cache_n: 30, prompt_ms: 60.5, predicted_n: 41, predicted_ms: 427.1, predicted_per_second: 95.997, load_ms: 0, queue_ms: 310,
};

export async function chat(mock, request, response) {
  const body = JSON.parse(Buffer.concat(await request.toArray()));
  mock.chats.push(body);
  const [wish, text = ANSWER] = body.messages.at(-1).content.split("[say]");
  if (wish.includes("[long]")) return refuse(response, 400, "this model's maximum context length is 2048 tokens, and the prompt alone has 9000 tokens: shorten it");
  if (wish.includes("[key]") && request.headers.authorization !== "Bearer sesame") return refuse(response, 401, "This hob wants an API key.");
  if (wish.includes("[gone]")) return request.socket.destroy();
  if (mock.busyTimes > 0) {
    mock.busyTimes -= 1;
    response.setHeader("Retry-After", "7");
    return refuse(response, 503, "small is loading");
  }
  response.on("close", () => mock.events.emit("chat closed", { wish, whole: response.writableFinished }));
  response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" });
  await answerTo(mock, { wish, text }, response);
}

async function answerTo(mock, { wish, text }, response) {
  const send = (events) => inOddPieces(response, events);
  await send(`: hob\n\n${chunk({ role: "assistant", content: "" })}`);
  if (wish.includes("[think]")) await send(words(THOUGHT).map((word) => chunk({ reasoning_content: word })).join(""));
  if (wish.includes("[stall in thought]")) await stall(mock);
  if (wish.includes("[all thought]")) return response.end(`${chunk({}, "length")}data: [DONE]\n\n`);
  const pieces = words(text).map((word) => chunk({ content: word }));
  const half = Math.ceil(pieces.length / 2);
  await send(pieces.slice(0, half).join(""));
  if (wish.includes("[stall]")) await stall(mock);
  if (wish.includes("[error]")) await send(event({ error: { message: "the model's process died", type: "server_error", param: null, code: null } }));
  if (wish.includes("[cut]")) return response.destroy();
  await send(pieces.slice(half).join(""));
  if (wish.includes("[undone]")) return response.end();
  const thought = wish.includes("[think]") ? { completion_tokens_details: { reasoning_tokens: 8 } } : {};
  await send(chunk({}, wish.includes("[short]") ? "length" : "stop", { timings: TIMINGS }));
  await send(event({ choices: [], usage: { ...USAGE, ...thought } }));
  response.end("data: [DONE]\n\n");
}

function words(text) {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

function chunk(delta, finish_reason = null, more = {}) {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
  return event({ id: "chatcmpl-mock", object: "chat.completion.chunk", created: 1, model: "small", choices, usage: null, ...more });
}
