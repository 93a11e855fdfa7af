// Copies text, also where the page has no secure context: over plain HTTP in a LAN there is no `navigator.clipboard`.

const SHOWN_MS = 1_500;

/** The button shows for a moment whether the copy worked. */
export async function copyText(button, text) {
  const name = button.textContent;
  button.disabled = true;
  button.textContent = (await copied(text)) ? "Copied" : "Not allowed";
  setTimeout(() => {
    button.textContent = name;
    button.disabled = false;
  }, SHOWN_MS);
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
  const field = document.createElement("textarea");
  field.className = "unseen";
  field.value = text;
  document.body.append(field);
  field.select();
  const worked = document.execCommand("copy");
  field.remove();
  return worked;
}
