// Questions and their answers, in memory only, because texts may be private.
// The size is limited: the oldest turns are removed first, from the page and from the request.

export const TURNS_MAX = 100;
const CHARACTERS_MAX = 2_000_000;

export class Conversation {
  /** @type {{question: string, answer: import("./answer.js").Answer}[]} */
  turns = [];

  /** @returns {object[]} the removed turns */
  add(turn) {
    this.turns.push(turn);
    const dropped = [];
    while (this.turns.length > 1 && this.#isTooMuch()) dropped.push(this.turns.shift());
    return dropped;
  }

  clear() {
    this.turns = [];
  }

  /**
   * The messages for the last question. Questions without an answer are left out, because most templates
   * expect questions and answers to alternate.
   */
  messages(system) {
    const past = this.turns.slice(0, -1).filter(({ answer }) => answer.text !== "");
    return [
      ...(system.trim() === "" ? [] : [{ role: "system", content: system }]),
      ...past.flatMap(({ question, answer }) => [
        { role: "user", content: question },
        { role: "assistant", content: answer.text },
      ]),
      { role: "user", content: this.turns.at(-1).question },
    ];
  }

  #isTooMuch() {
    const characters = this.turns.reduce((sum, { question, answer }) => sum + question.length + answer.characters, 0);
    return this.turns.length > TURNS_MAX || characters > CHARACTERS_MAX;
  }
}
