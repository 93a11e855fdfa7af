// What was said in a conversation, line by line. In memory only, because texts may be private.

const LINES_MAX = 200;
const CHARACTERS_MAX = 20_000;

export class Captions {
  /** @type {{id: string, who: "user"|"hob", text: string, isOpen: boolean, isCut: boolean, note: string}[]} */
  lines = [];

  /** The line of this item, or undefined. */
  find(id) {
    return this.lines.find((line) => line.id === id);
  }

  /** The line of this item, at the end if it is new. */
  open(id, who) {
    const known = this.find(id);
    if (known) return known;
    const line = { id, who, text: "", isOpen: true, isCut: false, note: "" };
    this.lines.push(line);
    if (this.lines.length > LINES_MAX) this.lines.shift();
    return line;
  }

  add(id, who, text) {
    const line = this.open(id, who);
    if (line.isOpen) line.text = bounded(line.text + text);
  }

  /** The whole text is known. A line without a text and a note is removed: it was a noise. */
  close(id, who, text) {
    const line = this.open(id, who);
    line.isOpen = false;
    if (!line.isCut) line.text = bounded(text.trim());
    if (line.text === "" && line.note === "") this.lines.splice(this.lines.indexOf(line), 1);
  }

  /** The conversation has ended. */
  end() {
    for (const line of this.lines) line.isOpen = false;
    this.lines = this.lines.filter(({ text, note }) => text !== "" || note !== "");
  }

  /** No more will be said of this line, for the reason in the note. */
  cut(line, note) {
    line.isOpen = false;
    line.isCut = true;
    line.note ||= note;
  }
}

function bounded(text) {
  return text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX - 1)}…` : text;
}
