// What a person does in the Chat tab, and what they can see there.

import { openPage } from "./browsers.mjs";
import { typeInto } from "./pilot.mjs";

export async function openChat(setting, size) {
  const opened = await openPage(setting, `${setting.url}#chat`, size);
  await opened.page.waitForSelector("#send:not(:disabled)");
  return opened;
}

export async function ask(page, text) {
  await typeInto(page, "#question", text.replaceAll("\n", " "));
  await page.keyboard.press("Enter");
}

/** Line breaks included, which typing would send. */
export async function paste(page, text) {
  await page.$eval("#question", (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event("input"));
  }, text);
  await page.click("#send");
}

/** For states in which an answer has ended. */
export function untilAnswer(page, ...states) {
  // Also on the screen, not only in the model.
  const drawn = (wanted) => wanted.includes(window.hob.answer?.state) && document.querySelector(".turn:last-child .answer").ariaBusy === "false";
  return page.waitForFunction(drawn, {}, states);
}

export async function askAndWait(page, text) {
  await ask(page, text);
  await untilAnswer(page, "finished");
}

/** What the page was given, and when; texts as the screen shows them. */
export function lastTurn(page) {
  return page.evaluate(() => {
    const shown = (selector) => [...document.querySelectorAll(`.turn:last-child ${selector}`)].filter((one) => one.checkVisibility()).map((one) => one.innerText.trim()).join("|");
    const { state, text, thinking, askedAt, firstTokenAt } = window.hob.answer;
    return {
      state, text, thinking,
      firstTokenS: firstTokenAt === null ? null : (firstTokenAt - askedAt) / 1000,
      question: shown(".question p"), prose: shown(".prose"), summary: shown("summary"), note: shown(".note"),
      error: shown(".error > span:first-child"), timings: shown(".timings"), buttons: shown(".answer > :not(.prose) button"),
    };
  });
}

/** The button of this name beside the last answer. */
export async function clickIn(page, name) {
  const named = (wanted) => [...document.querySelectorAll(".turn:last-child .answer button")].find((button) => button.textContent === wanted && button.checkVisibility());
  const button = await page.waitForFunction(named, {}, name);
  await button.asElement().click();
}
