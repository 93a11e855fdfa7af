// The field for the API key. It is hidden until the server asks for a key, and shared by all tabs.

import { rememberApiKey } from "./api.js";

const row = document.getElementById("key-row");
const key = document.getElementById("key");

key.addEventListener("change", () => rememberApiKey(key.value));

export function askForKey() {
  row.hidden = false;
  key.focus();
}
