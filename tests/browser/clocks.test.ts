// Clocks: of machines that are wrong, of other time zones, and of hidden tabs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page, Request } from "playwright-core";
import { end, startBrowser, type Browser } from "./browser.ts";
import { reaches, startPeer, storeAll, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await storeAll(server.client);
  await server.client.start("steps", { run_id: "clocked", input: { base: peer.url } });
});
after(() => end(browser, server, peer));

const HOUR = 3_600_000;

/** Answers have the time of the server, as those of Cloudflare do. */
const withDates = (page: Page) =>
  page.route(/\/v1\/(?!.*\/live)/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), date: new Date().toUTCString() } });
  });

for (const wrongMs of [HOUR, -HOUR]) {
  test(`times left are right where the clock of the machine is an hour ${wrongMs > 0 ? "fast" : "slow"}`, async () => {
    const page = await browser.open();
    await page.addInitScript((wrongMs) => {
      const real = Date.now.bind(Date);
      Date.now = () => real() + wrongMs;
    }, wrongMs);
    await withDates(page);
    await page.goto(`${server.url}/runs/clocked`);
    await page.locator(".time-left", { hasText: /^\dm \d\ds left$/ }).waitFor();
    await page.goto(`${server.url}/runs?within=15m`);
    await page.locator("tbody .at-time", { hasText: /^\dm \d\ds left$/ }).first().waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
}

test("moments are those of the reader's time zone, which their titles name", async () => {
  const page = await browser.open({ timezone: "Asia/Kolkata" });
  await page.goto(`${server.url}/runs/clocked`);
  const title = (await page.locator(".run-facts time").getAttribute("title"))!;
  const { started_at } = await server.client.run("clocked");
  const there = new Date(started_at + 5.5 * HOUR).toISOString().replace("T", " ").replace("Z", "");
  assert.equal(title, `${there} UTC+05:30`);
  await server.client.start("timing", { run_id: "zoned", input: { base: peer.url } });
  await reaches(server.client, "zoned", "failed");
  const [record] = (await server.client.timeouts("zoned", {})).items;
  await page.goto(`${server.url}/runs/zoned?view=timeouts`);
  const shown = new Date(Date.parse(record!.timeout_event.timestamp) + 5.5 * HOUR).toISOString().replace("T", " ").replace("Z", "");
  await page.getByText(shown).waitFor();
});

/** Whether the page is looked at, as browsers tell it. */
const setHidden = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

test("a tab that nobody looks at holds no connection, and nothing is missing when it is looked at again", async () => {
  await server.client.start("review", { run_id: "unseen", input: { title: "x", amount: 1 } });
  const waiting = await reaches(server.client, "unseen", "waiting");
  const page = await browser.open();
  let open = 0;
  const isLive = (url: string): boolean => url.endsWith("/live");
  page.on("request", (request) => void (isLive(request.url()) && (open += 1)));
  const ended = (request: Request) => void (isLive(request.url()) && (open -= 1));
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  await page.goto(`${server.url}/runs/unseen?view=events`);
  await page.locator('.event[data-kind="gate_opened"]').waitFor();
  assert.equal(open, 1);
  await setHidden(page, true);
  await until("the stream to be closed", () => open === 0);
  await server.client.decide("unseen", waiting.deadlines.find(({ kind }) => kind === "gate")!.gate_id!, { choice: "approve" });
  await reaches(server.client, "unseen", "completed");
  await setHidden(page, false);
  await page.locator('.event[data-kind="run_completed"]').waitFor();
  const shown = await page.locator(".event .seq").allTextContents();
  assert.deepEqual(shown.map(Number).sort((a, b) => a - b), Array.from({ length: shown.length }, (_, index) => index + 1));
});
