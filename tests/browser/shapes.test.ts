// Answers of another shape than this dashboard knows: a part that cannot be drawn says so, and the rest of the page is there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { end, startBrowser, type Browser } from "./browser.ts";
import { playScene, startPeer, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await playScene(server.client, peer);
});
after(() => end(browser, server, peer));

/** Answers of a path with changed items. */
const change = (page: Page, pattern: RegExp, edit: (body: any) => void) =>
  page.route(pattern, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    edit(body);
    await route.fulfill({ response, json: body });
  });

test("one gate of an odd shape does not hide the others", async () => {
  const page = await browser.open();
  await change(page, /\/v1\/gates/, ({ items }) => items.forEach((gate: any) => gate.run_id === "review-1" && (gate.choices = null)));
  await page.goto(`${server.url}/inbox`);
  await page.getByText(/^The gate \S+ of review-1 cannot be shown: /).waitFor();
  await page.locator(".gate", { hasText: "Train to Ghent" }).getByRole("button", { name: "approve" }).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a view of a run that cannot be drawn leaves the others", async () => {
  const page = await browser.open();
  await change(page, /\/v1\/runs\/failing-1\/tokens/, ({ items }) => items.forEach((token: any) => (token.steps = null)));
  await page.goto(`${server.url}/runs/failing-1/tokens/t2`);
  await page.getByText(/^The token cannot be shown: /).waitFor();
  await page.locator(".timeline .lane", { hasText: "charge" }).waitFor();
  await page.locator(".node").first().waitFor();
  await page.getByRole("button", { name: "Retry from what failed" }).waitFor();
  await change(page, /\/v1\/runs\/failing-1\/notifications/, (body) => (body.items = [null]));
  await page.getByRole("tab", { name: "Notifications" }).click();
  await page.getByText(/^This view cannot be shown: /).waitFor();
  await page.getByRole("tab", { name: "Context" }).click();
  await page.locator("pre").first().waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a page that cannot be drawn is not blank, and leads to the others", async () => {
  const page = await browser.open();
  await change(page, /\/v1\/runs\/steps-live(\?|$)/, (run) => Object.assign(run, { counts: undefined, deadlines: undefined, started_at: "noon" }));
  await page.goto(`${server.url}/runs/steps-live`);
  await page.getByText(/^This page cannot be shown: /).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".nav").getByRole("link", { name: "Workflows" }).click();
  await page.locator("tbody tr").first().waitFor();
  assert.equal(await page.getByText("cannot be shown").count(), 0);
});
