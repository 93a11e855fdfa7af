// Languages: their English names, and the menu of those that a transcription model understands.

const names = new Intl.DisplayNames(["en"], { type: "language" });

// Whisper's languages, for models whose languages hob does not know.
const WHISPER = ("en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi"
  + " ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd"
  + " gu am yi lo uz fo ht creole ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue").split(" ");

/** @param {string} tag as BCP 47 writes it */
export function languageName(tag) {
  try {
    return names.of(tag);
  } catch {
    return tag; // not a tag: already a name
  }
}

/** Keeps the chosen language, if the model understands it. @param {string[]} codes of the model; empty: not known */
export function fillLanguages(select, codes) {
  const known = codes.length > 0 ? codes : WHISPER;
  const named = known.map((code) => [languageName(code), code]).sort(([one], [other]) => one.localeCompare(other, "en"));
  // A model with one language detects nothing.
  const all = named.length > 1 ? [["Detect", ""], ...named] : named;
  const chosen = select.value;
  if (all.length === select.length && all.every(([, code], index) => select.options[index].value === code)) return;
  select.replaceChildren(...all.map(([name, code]) => new Option(name, code)));
  if (known.includes(chosen)) select.value = chosen;
}
