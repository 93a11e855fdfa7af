// The words of the Team tab: the state of a run, and each of its events.

import { secondsText, tokensText } from "./now-text.js";

const STATUSES = {
  running: "works",
  interrupted: "interrupted",
  waiting_approval: "waits for approval",
  waiting_client: "waits for its client",
  completed: "completed",
  completed_partial: "ended by its budget",
  failed: "failed",
  cancelled: "cancelled",
};

export function statusText(status) {
  return STATUSES[status] ?? status;
}

export function figuresText({ turns, time_s: seconds, prompt_tokens: prompt, answer_tokens: answer, cost_usd: cost, started_unix_ms: started }) {
  return [
    started !== null && new Date(started).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" }),
    secondsText(seconds * 1_000),
    `${turns} ${turns === 1 ? "turn" : "turns"}`,
    tokensText(prompt + answer),
    cost > 0 && `${cost.toFixed(4)} USD`,
  ].filter(Boolean).join(" · ");
}

/** JSON in lines, or the text itself. */
export function jsonText(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

const UNSEEN = /[^\P{C}\n]|[\p{Zl}\p{Zp}\p{DI}]/gu;

/** A text in which every character can be seen: some change the order of the others, or look like nothing. */
export function seenText(text) {
  return text.replace(UNSEEN, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

// Longer arguments are folded, with lines of their own.
const INLINE_MAX_CHARACTERS = 120;

function argumentsOf(given) {
  const short = JSON.stringify(given);
  return short.length > INLINE_MAX_CHARACTERS ? { text: jsonText(given), short } : { text: short };
}

/** An agent's name, with its number if others of this name work at the same time. */
function named(agent, number) {
  return number > 1 ? `${agent} ${number}` : agent;
}

/** How an event is shown: a head, a note after it, and a text that may be long. Events without an entry are not shown. */
const STEPS = {
  "run.resumed": () => ({ head: "The run goes on" }),
  "run.ended": ({ error }) => (error ? { head: "The run failed", text: error, isBad: true } : null),
  "agent.started": ({ model }, agent) => ({ head: agent, note: model, isAgent: true }),
  "model.answered": ({ target, prompt_tokens: prompt, answer_tokens: answer, ms }) => ({ note: `${target}: ${prompt} + ${answer} tokens, ${(ms / 1_000).toFixed(1)} s` }),
  "model.stopped": ({ target, prompt_tokens: prompt, answer_tokens: answer }) => ({ note: `${target}: stopped after ${prompt} + ${answer} tokens` }),
  "model.loading": ({ model }) => ({ note: `${model} is loading` }),
  "model.fallback": ({ from, to, reason }) => ({ head: `${to} instead of ${from}`, text: reason }),
  "tools.missing": ({ note }) => ({ head: "Tools are missing", text: note, isBad: true }),
  "model.stalled": ({ error }) => ({ head: "The model was given up", text: error, isBad: true }),
  "model.reminded": ({ reason }) => ({ head: "The model was reminded", text: reason, isBad: true }),
  "model.failed": ({ error }) => ({ head: "The model failed", text: error, isBad: true }),
  "handoff.occurred": ({ to, brief }) => ({ head: `→ ${to}`, text: brief }),
  "handoff.returned": ({ from, number, text }) => ({ head: `← ${named(from, number)}`, text }),
  "delegate.occurred": ({ to, brief }) => ({ head: `→ ${to}`, text: jsonText(brief), short: String(brief?.goal ?? "") }),
  "delegate.returned": ({ from, number, text }) => ({ head: `← ${named(from, number)}`, text }),
  "tool.called": ({ name, arguments: given }) => ({ head: name, ...argumentsOf(given) }),
  "tool.output": ({ output }) => ({ head: output.is_error ? "Failed" : "Output", text: output.text, isBad: output.is_error }),
  "tool.invalid": ({ name, reason }) => ({ head: `${name} was not called`, text: reason, isBad: true }),
  "tool.repaired": ({ name, repairs }) => ({ head: `${name}: repaired`, text: repairs.join(", ") }),
  "approval.requested": ({ name, reason }) => ({ head: `${name} waits for approval`, text: reason }),
  "approval.resolved": ({ is_approved: isApproved }) => ({ head: isApproved ? "Approved" : "Denied" }),
  "budget.nudge": ({ turns_left: left }) => ({ note: left === 1 ? "1 turn left" : `${left} turns left` }),
  "budget.exhausted": ({ limit, used }) => ({ head: `The limit of ${limit} is reached`, note: used }),
};

/** @returns {{head?: string, note?: string, text?: string, short?: string, isBad?: boolean, isAgent?: boolean, who?: string} | null} */
export function stepOf({ type, data, agent, number }) {
  const step = STEPS[type]?.(data, named(agent, number)) ?? null;
  // While several delegates work, each row says which of them it is about.
  return step === null || step.isAgent || number === undefined ? step : { ...step, who: named(agent, number) };
}

/** What happens now, by the last event. Empty: nothing that takes time. */
export function activityText({ type, data, agent, number }) {
  if (type === "model.requested") return `${named(agent, number)} waits for ${data.model}`;
  if (type === "model.loading") return `${data.model} is loading`;
  if (type === "tool.called") return `${named(agent, number)} runs ${data.name}`;
  return "";
}
