// The page: a tab that speaks, one that chats, one that says what fits, one that shows what runs. Each wires its own part of the document.

import { currentAnswer, showChat } from "./chat-tab.js";
import { showFit } from "./fit-tab.js";
import { showNow } from "./now-tab.js";
import { sounding } from "./sounding.js";
import "./speak-tab.js";
import { startTabs } from "./tabs.js";

const NAMES = { speak: "speaks", chat: "chats", fit: "measures", now: "works" };

// What the page shows, for the browser tests and the curious.
window.hob = {
  get speech() { return sounding(); },
  get answer() { return currentAnswer(); },
};

startTabs((name) => {
  document.title = `hob ${NAMES[name]}`;
  document.getElementById("does").textContent = NAMES[name];
  document.getElementById("model").hidden = name !== "speak";
  document.getElementById("chat-state").hidden = name !== "chat";
  document.getElementById("fit-state").hidden = name !== "fit";
  document.getElementById("now-state").hidden = name !== "now";
  showChat(name === "chat");
  showFit(name === "fit");
  showNow(name === "now");
});
