// The field for the API key: hidden until a server wants one, the same for both tabs.

import { rememberApiKey } from "./api.js";

const row = document.getElementById("key-row");
const key = document.getElementById("key");

key.addEventListener("change", () => rememberApiKey(key.value));

export function askForKey() {
  row.hidden = false;
  key.focus();
}
