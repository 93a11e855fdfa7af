// Elements made from data, never from markup: what a model writes stays text.

/** @param {Record<string, unknown>} properties of the element, such as `className` or `onclick` */
export function make(tag, properties = {}, children = []) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const child of children) element.append(child);
  return element;
}

/** Only changes reach the page, so this may be called every frame. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
