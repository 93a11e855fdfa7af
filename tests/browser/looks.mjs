// What every tab is checked for: its width, its colours, and what axe finds.
// Screenshots go to SCREENSHOTS, or to a temporary folder, for a person to look at.

import assert from "node:assert/strict";
import { mkdir, mkdtemp } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import axe from "axe-core";

/** The folder for the screenshots of a tab. */
export async function screenshotFolder(tab) {
  const folder = process.env.SCREENSHOTS ?? (await mkdtemp(path.join(os.tmpdir(), `hob-${tab}-`)));
  await mkdir(folder, { recursive: true });
  return folder;
}

/** The page is no wider than the screen, and has the colours of the system's setting. */
export async function checkLayout(page, { scheme }) {
  const shape = await page.evaluate(() => ({
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  }));
  assert.deepEqual(shape, { overflow: 0, dark: scheme === "dark" });
}

/** axe finds no violation. */
export async function checkAccessibility(page, message) {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { violations: all } = await window.axe.run(document);
    return all.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
  assert.deepEqual(violations, [], message);
}
