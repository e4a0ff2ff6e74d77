// The pictures of docs/console.md.
import { join } from "node:path";

import { connected, open } from "./browser.mjs";

export async function takeScreenshots(stage, folder) {
  const shoot = async (name, hash, ready, options = {}) => {
    const { page, close } = await open(stage, hash, { viewport: { width: 1120, height: 620 }, ...options });
    await connected(page);
    await ready(page);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    await close();
  };
  await shoot("tasks", "/tasks", (page) => page.getByRole("link", { name: "Release 2.4" }).waitFor());
  await shoot("task", `/task/${stage.ids.done}`, (page) => page.locator(".from-agent").waitFor());
  await shoot("inbox", "/inbox", async (page) => {
    await page.locator(".queue-open", { hasText: "parser.rs" }).click();
    await page.locator(".card .diff-row.added").waitFor();
  });
  await shoot("light", `/task/${stage.ids.hidden}`, (page) => page.locator(".waiting-here .hidden-char").first().waitFor(), { colorScheme: "light" });
  await shoot("phone", "/inbox", (page) => page.locator(".card .exact").first().waitFor(), { viewport: { width: 390, height: 700 } });
}
