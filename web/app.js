// The page has six tabs: speech, transcription, chat, conversation, which models fit, and current activity. Each tab wires its own part of the document.

import { currentAnswer, showChat } from "./chat-tab.js";
import { showFit } from "./fit-tab.js";
import { currentTranscript, showHear } from "./hear-tab.js";
import { showNow } from "./now-tab.js";
import { currentSpeech } from "./current-speech.js";
import "./speak-tab.js";
import { currentTalk, showTalk } from "./talk-tab.js";
import { startTabs } from "./tabs.js";

const TITLES = { speak: "speech", hear: "transcription", chat: "chat", talk: "conversation", fit: "fit", now: "activity" };

// What the page shows, for browser tests and the console.
window.hob = {
  get speech() { return currentSpeech(); },
  get transcript() { return currentTranscript(); },
  get answer() { return currentAnswer(); },
  get talk() { return currentTalk(); },
};

startTabs((name) => {
  document.title = `hob ${TITLES[name]}`;
  document.getElementById("does").textContent = TITLES[name];
  document.getElementById("model").hidden = name !== "speak";
  document.getElementById("hear-state").hidden = name !== "hear";
  document.getElementById("chat-state").hidden = name !== "chat";
  document.getElementById("talk-state").hidden = name !== "talk";
  document.getElementById("fit-state").hidden = name !== "fit";
  document.getElementById("now-state").hidden = name !== "now";
  showHear(name === "hear");
  showChat(name === "chat");
  showTalk(name === "talk");
  showFit(name === "fit");
  showNow(name === "now");
});
