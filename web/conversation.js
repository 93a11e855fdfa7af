// What was said: questions and their answers, in memory only, because texts may be private.
// Bounded: the oldest turns go first, from the page and from what the model is sent.

export const TURNS_MAX = 100;
const CHARACTERS_MAX = 2_000_000;

export class Conversation {
  /** @type {{question: string, answer: import("./answer.js").Answer}[]} */
  turns = [];

  /** @returns {object[]} the turns that had to go */
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
   * What the model is sent to answer the last question. A question that was never answered is left out:
   * most templates want question and answer in turns.
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
