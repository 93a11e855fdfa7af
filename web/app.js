// The page: a tab that speaks and a tab that chats. Each wires its own part of the document.

import { currentAnswer, showChat } from "./chat-tab.js";
import { sounding } from "./sounding.js";
import "./speak-tab.js";
import { startTabs } from "./tabs.js";

const NAMES = { speak: "speaks", chat: "chats" };

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
  showChat(name === "chat");
});
