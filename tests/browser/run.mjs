// Runs every browser test in both browsers: against the server at HOB_URL, or else against the mock.
// Only the mock can produce faults and known answers. With HOB_URL these tests are left out, so that they do not pass
// without a check.

import { after, before, describe } from "node:test";

import { closeDarkBrowsers, launch } from "./browsers.mjs";
import { startMock } from "./mock.mjs";
import { chatFaultTests } from "./tests-chat-faults.mjs";
import { chatTests } from "./tests-chat.mjs";
import { fallbackTests } from "./tests-fallbacks.mjs";
import { faultTests } from "./tests-faults.mjs";
import { fitTests } from "./tests-fit.mjs";
import { hearFaultTests } from "./tests-hear-faults.mjs";
import { hearTests } from "./tests-hear.mjs";
import { listeningTests } from "./tests-listening.mjs";
import { microphoneTests } from "./tests-microphone.mjs";
import { markdownTests } from "./tests-markdown.mjs";
import { nowTests } from "./tests-now.mjs";
import { pageTests } from "./tests-page.mjs";
import { siteDrawnTests } from "./tests-site-drawn.mjs";
import { siteTests } from "./tests-site.mjs";
import { soundTests } from "./tests-sound.mjs";
import { talkFaultTests } from "./tests-talk-faults.mjs";
import { talkTests } from "./tests-talk.mjs";
import { teamTests } from "./tests-team.mjs";

const mock = process.env.HOB_URL ? null : await startMock();
const url = process.env.HOB_URL ?? mock.url;
const wanted = process.env.BROWSERS?.split(",") ?? ["chromium", "firefox"];
const isPageWanted = process.env.TESTS !== "site";
// Browsers differ in sound, microphones, keys and streams. The other tests found nothing in Firefox that they did not
// find in Chromium, and take as long.
const isWhole = process.env.TESTS !== "sound";

after(async () => {
  await closeDarkBrowsers();
  mock?.close();
});

// A folder and a file that were built before. The tests cannot build them.
const site = process.env.SITE;
const listening = process.env.LISTENING;

for (const name of isPageWanted ? wanted : []) {
  describe(name, () => {
    // One browser for all its tests: starting one takes seconds, a page milliseconds.
    const setting = { name, url, mock };
    before(async () => Object.assign(setting, await launch(name)));
    after(() => setting.close());
    soundTests(setting);
    pageTests(setting);
    fallbackTests(setting);
    if (listening) listeningTests(setting, listening);
    if (isWhole) markdownTests(setting);
    if (!mock) return;
    faultTests(setting);
    chatTests(setting);
    hearTests(setting);
    hearFaultTests(setting);
    microphoneTests(setting);
    talkTests(setting);
    talkFaultTests(setting);
    if (!isWhole) return;
    chatFaultTests(setting);
    nowTests(setting);
    fitTests(setting);
    teamTests(setting);
  });
}

if (site) {
  for (const name of wanted) {
    describe(`benchmarks in ${name}`, async () => {
      const setting = { name };
      before(async () => Object.assign(setting, await launch(name)));
      after(() => setting.close());
      await siteTests(setting, site);
      await siteDrawnTests(setting, site);
    });
  }
}
