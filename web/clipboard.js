// Copies text, also where the page has no secure context: over plain HTTP in a LAN there is no `navigator.clipboard`.

const SHOWN_MS = 1_500;

/** The button shows for a moment whether the copy worked. It stays enabled, because a disabled one loses the focus. */
export async function copyText(button, text) {
  button.dataset.name ??= button.textContent;
  button.textContent = (await copied(text)) ? "Copied" : "Not allowed";
  setTimeout(() => { button.textContent = button.dataset.name; }, SHOWN_MS);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

function copiedBySelection(text) {
  const { activeElement } = document;
  const field = document.createElement("textarea");
  field.className = "unseen";
  field.readOnly = true; // so that a phone opens no keyboard
  field.value = text;
  // In view, because some browsers scroll to what is selected.
  Object.assign(field.style, { position: "fixed", top: "0" });
  document.body.append(field);
  field.focus({ preventScroll: true });
  field.setSelectionRange(0, text.length); // Safari on phones does not obey `select` in a read-only field
  const worked = document.execCommand("copy");
  field.remove();
  activeElement?.focus({ preventScroll: true });
  return worked;
}
