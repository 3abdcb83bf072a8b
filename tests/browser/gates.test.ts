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
  // For a moment after a gate has gone keys decide nothing: who pressed one meant the gate before.
  await until("the other gate to be decided", async () => {
    await page.keyboard.press("1");
    return (await statusOf("fork-1", "left")) === "completed";
  });
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

test("a page that is left before a decision was sent asks first", async () => {
  await server.client.start("fork", { run_id: "fork-4", input: {} });
  await reaches(server.client, "fork-4", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fork-4`);
  await page.locator('.gate:has-text("Right?") kbd').first().waitFor();
  // It is left by itself: on a busy machine the second has passed before another order reaches the browser.
  await page.evaluate(() => {
    const watcher = new MutationObserver(() => {
      if (!document.querySelector(".notice kbd")) return;
      watcher.disconnect();
      location.reload();
    });
    watcher.observe(document.body, { childList: true, subtree: true });
  });
  const asked = page.waitForEvent("dialog");
  // The key is done with when the question has been answered.
  const pressed = page.keyboard.press("1");
  const dialog = await asked;
  assert.equal(dialog.type(), "beforeunload");
  assert.equal(await statusOf("fork-4", "right"), "awaiting_human");
  await dialog.dismiss();
  await pressed;
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

test("a form has fields inside of objects, lists and alternatives, and what it sends is what the schema asks for", async () => {
  await server.client.start("paperwork", { run_id: "paperwork-1", input: {} });
  await reaches(server.client, "paperwork-1", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/paperwork-1`);
  const field = (name: string) => page.getByRole("textbox", { name });
  await field("City").fill("Bern");
  await field("Zip").fill("12");
  await field("Amount").fill("501");
  await page.getByText("Amount is at most 500").waitFor();
  await field("Amount").fill("86.5");
  await page.getByLabel("Due").fill("2026-12-24");
  for (const article of ["chair", "table"]) {
    await page.getByRole("button", { name: "Add to Lines" }).click();
    await field("Article").last().fill(article);
  }
  await page.getByRole("button", { name: "Remove Lines 1" }).click();
  await page.getByRole("checkbox", { name: "tuesday" }).check();
  await page.getByLabel("Contact").selectOption({ label: "By mail" });
  await field("Mail").fill("ada@example.com");
  // Written as JSON it is the same, and what is written there is in the form again.
  await page.getByRole("button", { name: "Write it as JSON" }).click();
  const json = page.getByRole("textbox", { name: "Input" });
  await json.fill((await json.inputValue()).replace("86.5", "87"));
  await page.getByRole("button", { name: "Fill in the form" }).click();
  assert.equal(await field("Amount").inputValue(), "87");
  // What only the API knows is said with its place, and nothing is lost.
  await page.getByRole("button", { name: "send" }).click();
  await page.locator(".notice", { hasText: "/input/address/zip" }).waitFor();
  await field("Zip").fill("3000");
  await page.getByRole("button", { name: "send" }).click();
  const run = await reaches(server.client, "paperwork-1", "completed");
  const decision = (run.context.state as { fill: { choice: string; input: unknown } }).fill;
  assert.deepEqual([decision.choice, decision.input], ["send", { amount: 87, address: { city: "Bern", zip: "3000" }, due: "2026-12-24", lines: [{ sku: "table" }], days: ["tuesday"], contact: { mail: "ada@example.com" } }]);
});

test("a form that may be left empty is left empty", async () => {
  await server.client.start("paperwork", { run_id: "paperwork-2", input: {} });
  const page = await browser.open();
  await page.goto(`${server.url}/runs/paperwork-2`);
  await page.getByRole("button", { name: "refuse" }).click();
  const run = await reaches(server.client, "paperwork-2", "completed");
  assert.equal((run.context.state as { fill: { input: unknown } }).fill.input, null);
});

test("what was open gives the focus back", async () => {
  await server.client.start("fork", { run_id: "fork-5", input: {} });
  await reaches(server.client, "fork-5", "waiting");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/fork-5`);
  const hasFocus = (name: string) => until(`the focus to be at ${name}`, () => page.getByRole("button", { name, exact: true }).evaluate((button) => button === document.activeElement));
  for (const close of ["Back", "Escape"]) {
    await page.getByRole("button", { name: "Cancel …" }).press("Enter");
    if (close === "Escape") await page.getByRole("dialog").press("Escape");
    else await page.getByRole("dialog").getByRole("button", { name: close }).click();
    await hasFocus("Cancel …");
  }
  await page.getByRole("button", { name: "Extend …" }).press("Enter");
  await page.getByLabel("Extend by").press("Escape");
  await hasFocus("Extend …");
  await server.client.cancel("fork-5", {});
});
