// Gates: which one a key decides, what they say, and how they show what a document has written.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { end, startBrowser, type Browser } from "./browser.ts";
import { LONG_RUN } from "./pages.ts";
import { reaches, startPeer, storeAll, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { wordy } from "./workflows.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  peer.route("/charge", () => ({ status: 422, body: { error: "the card was declined" } }));
  await storeAll(server.client);
});
after(() => end(browser, server, peer));

const statusOf = async (run: string, node: string) => (await server.client.tokens(run)).items.find(({ node_id }) => node_id === node)?.status;

test("on the page of a run a key decides the gate with the nearest deadline, and no other", async () => {
  await server.client.start("fork", { run_id: "fork-1", input: {} });
  await reaches(server.client, "fork-1", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fork-1`);
  await until("both gates to be shown", async () => (await page.locator(".gate").count()) === 2);
  assert.deepEqual(await page.locator(".gate .prompt").allTextContents(), ["Right?", "Left?"]);
  assert.equal(await page.locator(".gate kbd").count(), 2, "keys are named at one gate only");
  // Held down it is one decision; the next gate is not decided by it.
  await until("one gate to be left", async () => {
    await page.keyboard.down("1");
    return (await page.locator(".gate").count()) === 1;
  });
  for (let count = 0; count < 10; count += 1) await page.keyboard.down("1");
  await page.keyboard.up("1");
  await until("the right gate to be decided", async () => (await statusOf("fork-1", "right")) === "completed");
  // A decision that is about to be sent could be taken back.
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  assert.equal(await statusOf("fork-1", "left"), "awaiting_human");
  await page.locator(".gate kbd").first().waitFor();
  await page.keyboard.press("1");
  await reaches(server.client, "fork-1", "completed");
});

test("j and k move between the gates of a run", async () => {
  await server.client.start("fork", { run_id: "fork-2", input: {} });
  await reaches(server.client, "fork-2", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fork-2`);
  await until("both gates to be shown", async () => (await page.locator(".gate").count()) === 2);
  await page.locator('.gate:has-text("Right?") kbd').first().waitFor();
  await page.keyboard.press("j");
  await page.locator('.gate:has-text("Left?") kbd').first().waitFor();
  await page.keyboard.press("2");
  await until("the left gate to be decided", async () => (await statusOf("fork-2", "left")) === "completed");
  assert.equal(await statusOf("fork-2", "right"), "awaiting_human");
  await server.client.cancel("fork-2", {});
});

test("a gate with a nearer deadline that comes meanwhile is not the one that a key decides", async () => {
  await server.client.start("review", { run_id: "first-come", input: { title: "A chair", amount: 5 } });
  const page = await browser.open();
  await page.goto(`${server.url}/inbox`);
  await page.locator('.gate-item:has-text("A chair") kbd').first().waitFor();
  await server.client.start("fork", { run_id: "fork-3", input: {} });
  await page.locator('.gate:has-text("Right?")').waitFor();
  assert.equal(await page.locator(".gate .prompt").first().textContent(), "Right?");
  await page.keyboard.press("1");
  await reaches(server.client, "first-come", "completed");
  assert.equal(await statusOf("fork-3", "right"), "awaiting_human");
  await server.client.cancel("fork-3", {});
});

test("a tab that is closed before a decision was sent asks first", async () => {
  await server.client.start("fork", { run_id: "fork-4", input: {} });
  await reaches(server.client, "fork-4", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fork-4`);
  await page.locator('.gate:has-text("Right?") kbd').first().waitFor();
  await page.keyboard.press("1");
  const asked = page.waitForEvent("dialog");
  await page.close({ runBeforeUnload: true });
  const dialog = await asked;
  assert.equal(dialog.type(), "beforeunload");
  await dialog.dismiss();
  await until("the decision to be sent", async () => (await statusOf("fork-4", "right")) === "completed");
  await server.client.cancel("fork-4", {});
});

test("the gate of a failure asks in words, and has the failure", async () => {
  await server.client.start("escalated", { run_id: "escalated-1", input: { base: peer.url } });
  await reaches(server.client, "escalated-1", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/escalated-1`);
  await page.locator(".gate .prompt", { hasText: /^Node charge failed: .* Retry it, fail it or skip it\?$/ }).waitFor();
  await page.getByText("The failure", { exact: true }).click();
  await page.locator(".gate pre", { hasText: '"code": "http_422"' }).waitFor();
});

test("forms and choices show direction marks, stay inside 360 px, and say who may decide", async () => {
  await server.client.start(wordy.id, { run_id: LONG_RUN, input: { note: "Pay?\n".repeat(60) } });
  await reaches(server.client, LONG_RUN, "waiting");
  const page = await browser.open({ width: 360, height: 740 });
  for (const path of [`/runs/${LONG_RUN}`, "/inbox", "/runs", "/workflows", `/workflows/${wordy.id}`, `/workflows/${wordy.id}?view=simulate`]) {
    await page.goto(server.url + path);
    await page.locator("main a, main bdi", { hasText: path === "/runs" ? LONG_RUN : path === "/workflows" ? wordy.id : /W{20}|Pay\?/ }).first().waitFor();
    if (path.includes("simulate")) await page.locator(".simulator .lane").first().waitFor();
    else if (path === "/inbox" || path.startsWith("/runs/")) await page.getByText(/nobody can decide/).first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, path);
  }
  await page.goto(`${server.url}/runs/${LONG_RUN}`);
  await page.getByText(/^⟨U\+202E⟩evil W+/).first().waitFor();
  const { height } = (await page.locator(".gate .prompt").boundingBox())!;
  assert.ok(height < 400, `the prompt is ${height} px high`);
});
