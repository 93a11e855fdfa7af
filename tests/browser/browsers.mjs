// Debian's two browsers, each driven through WebDriver BiDi or CDP with a real click.
// Machines that run tests have no sound card: Firefox gets its own mock of one, Chromium brings a silent sink.

import { existsSync } from "node:fs";
import { access, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import puppeteer from "puppeteer-core";

// These limits measure nothing: they end a test that would wait forever, even on a busy machine.
/** Limit for everything that a test waits for. */
export const DEADLINE_MS = 120_000;
const START_MS = 120_000;
/** For every test: what never happens is a failure, not a hang. */
export const LIMIT = { timeout: 300_000 };

/** How often a test looks whether what it waits for has come. */
const POLL_MS = 50;

/** Frames a second in which a page draws. Without a graphics card, drawing takes most of a browser's time. */
const FRAMES_PER_SECOND = 20;
/** Between two frames of Chromium, which has no such setting and draws 60 a second. */
const CHROMIUM_PAUSE_MS = 1000 / FRAMES_PER_SECOND - 1000 / 60;

/** Of screens, in CSS pixels: a desk's and two phones'. */
export const WIDTHS_PX = [1100, 390, 360];

/** A name of the mock for which browsers do not allow the microphone. */
export const OTHER_NAME = "hob.test";

// Chromium without its windows, which Debian packages separately, takes three quarters of the processor time.
const SHELL = "/usr/bin/chromium-headless-shell";
const CHROMIUM = process.env.CHROMIUM ?? (existsSync(SHELL) ? SHELL : "/usr/bin/chromium");

export const BROWSERS = {
  chromium: {
    browser: "chrome",
    executablePath: CHROMIUM,
    headless: CHROMIUM.endsWith("-shell") ? "shell" : true,
    // No sandbox: tests run in containers, often as root.
    // One process for all pages, as below in Firefox.
    // A fake microphone that beeps, and a name that is not a secure context.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
      "--renderer-process-limit=1", "--disable-site-isolation-trials", "--disable-features=IsolateOrigins,site-per-process",
      `--host-resolver-rules=MAP ${OTHER_NAME} 127.0.0.1`],
  },
  firefox: {
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    headless: true,
    extraPrefsFirefox: {
      // Without it the audio clock of a machine without a device never starts.
      "media.cubeb.force_mock_context": true,
      "media.navigator.streams.fake": true,
      "media.navigator.permission.disabled": true,
      "network.dns.localDomains": OTHER_NAME,
      "browser.download.folderList": 2,
      "browser.download.useDownloadDir": true,
      "browser.download.alwaysOpenPanel": false,
      "layout.frame_rate": FRAMES_PER_SECOND,
      // One process for all pages, because each test opens a new one. Otherwise it also starts some that it may need later.
      "dom.ipc.processCount": 1,
      "dom.ipc.processPrelaunch.enabled": false,
    },
  },
};

// Chromium is asked per page; Firefox only knows this at its start.
const FIREFOX_SCHEMES = { dark: 0, light: 1 };

/** One browser and the folder its downloads land in. */
export async function launch(name, scheme = "light") {
  const options = BROWSERS[name];
  await access(options.executablePath);
  const downloads = await mkdtemp(path.join(os.tmpdir(), `hob-${name}-`));
  const browser = await puppeteer.launch({
    ...options,
    timeout: START_MS,
    protocolTimeout: LIMIT.timeout,
    extraPrefsFirefox: {
      ...options.extraPrefsFirefox,
      "browser.download.dir": downloads,
      "layout.css.prefers-color-scheme.content-override": FIREFOX_SCHEMES[scheme],
    },
    ...(name === "chromium" && { downloadBehavior: { policy: "allow", downloadPath: downloads } }),
  });
  const close = async () => {
    await browser.close();
    await rm(downloads, { recursive: true });
  };
  return { name, scheme, browser, downloads, close };
}

/** The contents of a download. A browser renames it when it is complete, or fills it last. */
export async function saved({ downloads }, name, encoding = "utf8") {
  for (const from = performance.now(); performance.now() - from < LIMIT.timeout / 4;) {
    const names = await readdir(downloads);
    const isComplete = names.includes(name) && !names.some((other) => /\.(part|crdownload)$/.test(other));
    const contents = isComplete ? await readFile(path.join(downloads, name), encoding) : "";
    if (contents.length > 0) return contents;
  }
  throw new Error(`${name} was not saved`);
}

/** Runs in the page. What asks for a frame meanwhile is drawn in the same one, as without a pause. */
function drawLessOften(pauseMs) {
  const nextFrame = window.requestAnimationFrame.bind(window);
  let waiting = [];
  const drawAll = (now) => {
    const due = waiting;
    waiting = [];
    for (const draw of due) {
      try {
        draw(now);
      } catch (error) {
        window.reportError(error);
      }
    }
  };
  window.requestAnimationFrame = (draw) => {
    if (waiting.push(draw) === 1) setTimeout(nextFrame, pauseMs, drawAll);
  };
}

/** A fresh page that keeps every complaint: console errors, exceptions, policy violations. */
export async function openPage({ name, browser, scheme }, url, { width = 1100, height = 900 } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  // Puppeteer looks once per frame. Without a graphics card a browser spends most of its time on these frames.
  const wait = page.waitForFunction.bind(page);
  page.waitForFunction = (condition, options, ...values) => wait(condition, { polling: POLL_MS, ...options }, ...values);
  await page.setViewport({ width, height });
  if (name === "chromium") {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluateOnNewDocument(drawLessOften, CHROMIUM_PAUSE_MS);
  }
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.evaluateOnNewDocument(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`));
  });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelectorAll("#voice option").length > 0);
  return { page, complaints };
}

// A dark browser for each browser that needs one of its own: Firefox knows the scheme only at its start.
const darkBrowsers = new Map();

/** The same look at a desk's and a phone's width, for people who set their system to dark. */
export async function inTheDark(setting, look) {
  const dark = { ...setting, scheme: "dark" };
  if (setting.name === "firefox") {
    if (!darkBrowsers.has(setting.name)) darkBrowsers.set(setting.name, await launch(setting.name, "dark"));
    Object.assign(dark, darkBrowsers.get(setting.name));
  }
  // Colours do not depend on the width; the third width would find nothing more.
  for (const width of WIDTHS_PX.slice(0, 2)) await look(dark, width);
}

/** After the last test. */
export async function closeDarkBrowsers() {
  for (const { close } of darkBrowsers.values()) await close();
}
