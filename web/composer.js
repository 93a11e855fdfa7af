// Where a message is written: Enter sends, Shift+Enter makes a line, and the field grows with the text.

/** `onSend` gets the text, and says whether it took it. */
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
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}
