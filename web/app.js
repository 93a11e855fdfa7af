// The page has four tabs: speech, chat, which models fit, and current activity. Each tab wires its own part of the document.

import { currentAnswer, showChat } from "./chat-tab.js";
import { showFit } from "./fit-tab.js";
import { showNow } from "./now-tab.js";
import { currentSpeech } from "./current-speech.js";
import "./speak-tab.js";
import { startTabs } from "./tabs.js";

const TITLES = { speak: "speech", chat: "chat", fit: "fit", now: "activity" };

// What the page shows, for browser tests and the console.
window.hob = {
  get speech() { return currentSpeech(); },
  get answer() { return currentAnswer(); },
};

startTabs((name) => {
  document.title = `hob ${TITLES[name]}`;
  document.getElementById("does").textContent = TITLES[name];
  document.getElementById("model").hidden = name !== "speak";
  document.getElementById("chat-state").hidden = name !== "chat";
  document.getElementById("fit-state").hidden = name !== "fit";
  document.getElementById("now-state").hidden = name !== "now";
  showChat(name === "chat");
  showFit(name === "fit");
  showNow(name === "now");
});
