// The page has seven tabs: speech, transcription, chat, conversation, teams, which models fit, and current activity. Each tab wires its own part of the document.

import { currentAnswer, showChat } from "./chat-tab.js";
import { showFit } from "./fit-tab.js";
import { currentTranscript, showHear } from "./hear-tab.js";
import { showNow } from "./now-tab.js";
import { currentSpeech } from "./current-speech.js";
import "./speak-tab.js";
import { currentTalk, showTalk } from "./talk-tab.js";
import { startTabs } from "./tabs.js";
import { showTeam } from "./team-tab.js";

const TITLES = { speak: "speech", hear: "transcription", chat: "chat", talk: "conversation", team: "team", fit: "fit", now: "activity" };

// Called when a tab is shown and when it is hidden. The Speak tab needs no call.
const SHOW = { hear: showHear, chat: showChat, talk: showTalk, team: showTeam, fit: showFit, now: showNow };

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
  for (const [tab, show] of Object.entries(SHOW)) {
    document.getElementById(`${tab}-state`).hidden = name !== tab;
    show(name === tab);
  }
});
