// The voice list as a menu, grouped by language.
// Languages come as BCP 47 tags; the browser knows their names.

import { make } from "./dom.js";
import { languageName } from "./languages.js";

export function fillVoices(select, voices, wanted) {
  const groups = new Map();
  for (const voice of voices) {
    if (!groups.has(voice.language)) groups.set(voice.language, []);
    groups.get(voice.language).push(voice);
  }
  select.replaceChildren(...[...groups].map(([language, members]) => group(language, members)));
  if (voices.some((voice) => voice.id === wanted)) select.value = wanted;
  select.disabled = voices.length === 0;
}

function group(language, voices) {
  return make("optgroup", { label: languageName(language) }, voices.map((voice) => new Option(label(voice), voice.id)));
}

function label({ name, gender }) {
  return gender ? `${name}, ${gender}` : name;
}
