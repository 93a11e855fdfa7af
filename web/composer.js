// The message field: Enter sends, Shift+Enter starts a new line, and the field grows with the text.

// Safari says that a composition has ended before it reports the key that ended it. It marks this key.
const COMPOSING_KEY_CODE = 229;

/** `onSend` gets the text, and returns whether it was sent. */
export function startComposer(form, field, onSend) {
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  };

  const send = () => {
    if (field.value.trim() === "" || !onSend(field.value)) return;
    field.value = "";
    fit();
  };

  field.addEventListener("input", fit);
  field.addEventListener("keydown", (event) => {
    // While a word is being composed (Chinese, Japanese, …), Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === COMPOSING_KEY_CODE) return;
    event.preventDefault();
    send();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}
