// What every tab is checked for: its width, its colours, and what axe finds.
// Screenshots are for a person to look at, and are taken only where SCREENSHOTS names a folder.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";

import axe from "axe-core";

/** Takes a screenshot, `name.png` in SCREENSHOTS. No test reads one, and without a graphics card it takes a second. */
export async function shoot(page, name, { fullPage = true } = {}) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage });
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
    // Whatever else axe lists about each element is not read, and takes time on a large page.
    const { violations: all } = await window.axe.run(document, { resultTypes: ["violations"] });
    return all.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
  assert.deepEqual(violations, [], message);
}
