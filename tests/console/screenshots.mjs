// The pictures of docs/console.md: each page of the demo's host, dark, light and on a phone.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { connected, open } from "./browser.mjs";
import { startDemo } from "./host.mjs";
import { indexed } from "./png.mjs";

const LOOKS = [
  ["", { viewport: { width: 1180, height: 700 } }],
  ["-light", { viewport: { width: 1180, height: 700 }, colorScheme: "light" }],
  ["-phone", { viewport: { width: 390, height: 760 }, isMobile: true, hasTouch: true }],
];

const openTask = async (page, name, isReady) => {
  await page.getByRole("link", { name }).click();
  await isReady(page).waitFor();
};

/** A page by name, where it begins, and how it comes to be as it is shown. */
const PAGES = [
  ["tasks", "/tasks", async (page) => {
    await page.locator(".row", { hasText: "Look at both ends" }).getByRole("button", { name: "2 agents" }).click();
    await page.locator(".row .depth-1").nth(1).waitFor();
  }],
  ["task", "/tasks", async (page) => {
    await openTask(page, "Correct the greeting", () => page.locator(".from-agent"));
    await page.locator(".diff-row.added").scrollIntoViewIfNeeded();
  }],
  ["prompt", "/tasks", async (page) => {
    await openTask(page, "Correct the greeting", () => page.locator(".from-agent"));
    await page.getByRole("link", { name: "What the model sees" }).click();
    await page.locator(".piece").first().waitFor();
  }],
  ["records", "/tasks", async (page) => {
    await openTask(page, "Correct the greeting", () => page.locator(".from-agent"));
    await page.getByRole("link", { name: "Records" }).click();
    await page.locator(".record", { has: page.locator(".r-operation") }).last().locator("summary").click();
    await page.locator(".record .code").waitFor();
    await page.keyboard.press("f");
  }],
  ["waiting", "/tasks", (page) => openTask(page, "Tidy the build folder", () => page.locator(".waiting-here .card:not(.fresh) .hidden-char").first())],
  ["inbox", "/inbox", async (page) => {
    await page.locator(".queue-open", { hasText: "Publish release" }).click();
    await page.locator(".card:not(.fresh) .exact", { hasText: "git push" }).waitFor();
  }],
  ["new", "/new", async (page) => {
    await page.getByLabel("What is to be done").fill("Find out why the greeting is cut off at 80 columns, and correct it.\nThe test that shows it comes first.");
  }],
  ["host", "/host", (page) => page.getByRole("group", { name: "Usage by model" }).waitFor()],
];

/** Answers the names of the files. */
export async function takeScreenshots(stage, folder) {
  const demo = await startDemo(stage.binary);
  const made = [];
  try {
    for (const [name, hash, show] of PAGES) {
      for (const [look, options] of LOOKS) {
        const { page, close } = await open({ ...stage, host: demo }, hash, { reducedMotion: "reduce", ...options });
        await connected(page);
        await show(page);
        await page.mouse.move(0, 0);
        writeFileSync(join(folder, `${name}${look}.png`), indexed(await page.screenshot({ animations: "disabled" })));
        made.push(`${name}${look}.png`);
        await close();
      }
    }
  } finally {
    await demo.close();
  }
  return made;
}
