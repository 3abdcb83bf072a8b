// Screenshots of every page, in light, dark and narrow, into dist/screenshots.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startBrowser } from "./browser.ts";
import { playScene, startPeer } from "./scene.ts";
import { startServer } from "./server.ts";

const output = fileURLToPath(new URL("../../dist/screenshots", import.meta.url));

const PAGES: [name: string, path: string, ready: string][] = [
  ["runs", "/runs", "tbody tr"],
  ["runs-failed", "/runs?status=failed,timed_out", "tbody tr"],
  ["run-live", "/runs/steps-live", ".node"],
  ["run-parked", "/runs/parked-1", ".gate"],
  ["run-failed", "/runs/failing-1", ".way"],
  ["run-timeouts", "/runs/timing-1?view=timeouts", "article"],
  ["run-loop", "/runs/loop-1", ".node"],
  ["run-branches", "/runs/wide-40/tokens/t7?view=tokens", ".token-panel dl"],
  ["run-events", "/runs/steps-live?view=events", ".event"],
  ["run-context", "/runs/review-1?view=context", "pre"],
  ["inbox", "/inbox", ".gate"],
  ["workflows", "/workflows", "tbody tr"],
  ["workflow", "/workflows/loop", ".node"],
  ["breakers", "/breakers", "h1"],
  ["health", "/health", ".uplot"],
  ["unknown", "/nowhere", "h1"],
];

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
      await page.screenshot({ path: join(output, `${name}-${suffix}.png`) });
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
