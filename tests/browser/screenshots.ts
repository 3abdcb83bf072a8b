// Screenshots of every page, in light, dark and narrow, into dist/screenshots.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startBrowser } from "./browser.ts";
import { PAGES } from "./pages.ts";
import { playScene, startPeer } from "./scene.ts";
import { startServer } from "./server.ts";

const output = fileURLToPath(new URL("../../dist/screenshots", import.meta.url));

const [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
try {
  await playScene(server.client, peer);
  mkdirSync(output, { recursive: true });
  for (const [suffix, options] of [["light", {}], ["dark", { dark: true }], ["narrow", { width: 360, height: 740 }]] as const) {
    const page = await browser.open(options);
    for (const [name, path, ready] of PAGES) {
      await page.goto(server.url + path);
      await page.locator(ready).first().waitFor();
      await page.waitForLoadState("networkidle", { timeout: 1_500 }).catch(() => {});
      await page.screenshot({ path: join(output, `${name}-${suffix}.png`), fullPage: true });
    }
    if (suffix === "light" || suffix === "narrow") {
      await page.goto(`${server.url}/runs?workflow=review`);
      await page.getByRole("button", { name: "Start a run" }).click();
      await page.getByLabel("Title").waitFor();
      await page.screenshot({ path: join(output, `start-${suffix}.png`) });
    }
  }
  for (const problem of [...browser.problems, ...browser.foreign]) console.error(problem);
  console.log(`screenshots are in ${output}`);
} finally {
  await browser.close();
  await server.dispose();
  await peer.close();
}
