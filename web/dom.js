// Makes elements from data, never from markup, so that a model's answer stays text.

/** @param {Record<string, unknown>} properties of the element, such as `className` or `onclick` */
export function make(tag, properties = {}, children = []) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const child of children) element.append(child);
  return element;
}

/** Changes the page only if the text differs, so this may be called every frame. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
