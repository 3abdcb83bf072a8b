// What operators do, in a real browser against a real `curfew dev`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { end, startBrowser, type Browser } from "./browser.ts";
import { openBreaker, reaches, startPeer, storeAll, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { checkout } from "./workflows.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await storeAll(server.client);
});
after(() => end(browser, server, peer));

test("a run is started from the form and watched live", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs`);
  await page.getByRole("button", { name: "Start a run" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Workflow").selectOption("steps");
  await dialog.getByText("Id and limit").click();
  await dialog.getByLabel("Run id").fill("from-the-form");
  await dialog.getByLabel("Address").fill(peer.url);
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(`${server.url}/runs/from-the-form`);
  await page.locator('[data-status="running"]').first().waitFor();
  // The third call is held: the first two pass before the eyes of the watcher.
  await page.locator('.timeline .lane:has-text("third")').waitFor();
  await page.locator('[data-node="second"].tone-good').waitFor();
  peer.release("third");
  await page.locator('.page-head [data-status="completed"]').waitFor();
  assert.equal((await server.client.run("from-the-form")).status, "completed");
});

test("a start that is refused says what is wrong once, by its place, and can be sent again", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs?workflow=loop`);
  await page.getByRole("button", { name: "Start a run" }).press("Enter");
  const dialog = page.getByRole("dialog");
  // The first field has the focus, not the button that closes.
  await until("the focus to be at the workflow", () => dialog.getByLabel("Workflow").evaluate((field) => field === document.activeElement));
  await dialog.getByText("Id and limit").click();
  await dialog.getByLabel("Run id").fill("not an id");
  await dialog.getByLabel("Limit of the run").fill("90d");
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  const problem = dialog.getByRole("alert");
  await problem.getByText("/timeout_ms").waitFor();
  assert.equal((await problem.textContent())!.split("/run_id").length, 2, (await problem.textContent())!);
  await dialog.getByLabel("Run id").fill("an-id");
  await dialog.getByLabel("Limit of the run").fill("5m");
  await dialog.getByLabel("Limit of the run").press("Enter");
  await page.waitForURL(`${server.url}/runs/an-id`);
});

test("the form names what the schema refuses", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs?workflow=review`);
  await page.getByRole("button", { name: "Start a run" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Amount").fill("many");
  await dialog.getByText("Amount is a number").waitFor();
  await until("the button to be disabled", () => dialog.getByRole("button", { name: "Start", exact: true }).isDisabled());
});

test("a gate is decided by keyboard, and a decision can be taken back", async () => {
  await server.client.start("review", { run_id: "by-keyboard", input: { title: "A chair", amount: 5 } });
  const page = await browser.open();
  await page.goto(`${server.url}/inbox`);
  await page.locator('.gate:has-text("A chair") kbd').first().waitFor();
  const isTakenBack = async (times: number) => {
    await page.locator(`body[data-undone="${times}"]`).waitFor();
    await until("the choices to be open again", () => page.getByRole("button", { name: "approve" }).first().isEnabled());
    assert.equal((await server.client.run("by-keyboard")).status, "waiting");
  };
  // Both ways back are taken inside the page: on a busy machine a second passes between two orders to a browser.
  await page.evaluate(() => {
    let shown = 0;
    let last: HTMLButtonElement | undefined;
    const watcher = new MutationObserver(() => {
      const button = [...document.querySelectorAll<HTMLButtonElement>(".notice button")].find(({ textContent }) => textContent.startsWith("Undo"));
      if (!button || button === last) return;
      last = button;
      shown += 1;
      if (shown === 1) button.click();
      else document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "u", bubbles: true }));
      document.body.dataset["undone"] = String(shown);
      if (shown === 2) watcher.disconnect();
    });
    watcher.observe(document.body, { childList: true, subtree: true });
  });
  for (const times of [1, 2]) {
    await page.keyboard.press("2");
    await isTakenBack(times);
  }
  await page.keyboard.press("1");
  const run = await reaches(server.client, "by-keyboard", "completed");
  assert.deepEqual(run.output, { choice: "approve" });
  await page.getByText("Nothing waits for a person.").waitFor();
});

test("the gate of a limit says what was done, why the limit passed, and what each choice does", async () => {
  await server.client.start("parked", { run_id: "asked", input: { base: peer.url } });
  await reaches(server.client, "asked", "paused");
  const page = await browser.open();
  await page.goto(`${server.url}/inbox`);
  const item = page.locator(".gate-item", { hasText: "asked" });
  await item.getByText(/^What used the time: stuck \d\.\d s, quick (\d+ ms|\d\.\d s)\.$/).waitFor();
  await item.getByText("Done so far: quick.").waitFor();
  await item.getByText("Under way: stuck.").waitFor();
  for (const choice of ["extend", "abort", "fail"]) await item.getByText(new RegExp(`^${choice}: `)).waitFor();
  await item.getByText("Without a decision the run ends as timed out after 7d 0h.").waitFor();
  await item.getByText("Why it timed out").click();
  await item.getByRole("group", { name: "What used the time" }).getByText("stuck").waitFor();
});

test("a parked run is extended by dragging its end", async () => {
  await server.client.start("parked", { run_id: "dragged", input: { base: peer.url } });
  await reaches(server.client, "dragged", "paused");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/dragged`);
  // The card of the gate is above the timeline and grows when it has read the run.
  await page.locator(".gate .cuts").waitFor();
  const handle = page.locator(".handle .grip");
  const card = page.getByRole("region", { name: "Extend the run" });
  // The scale follows the time: on a busy machine the handle may have moved on between two orders to the browser.
  await until("the end to be dragged", async () => {
    const box = (await handle.boundingBox())!;
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width / 2, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 60, y, { steps: 5 });
    await page.mouse.move(box.x + 150, y, { steps: 5 });
    await page.mouse.up();
    return card.isVisible();
  });
  const typed = await card.getByLabel("Extend by").inputValue();
  assert.match(typed, /^\d+[hms]/);
  // A longer one shows which inner limit still ends earlier.
  await card.getByLabel("Extend by").fill("1h");
  await card.getByText("These limits stay, and end earlier:").waitFor();
  await card.getByRole("button", { name: "Extend", exact: true }).click();
  await page.locator('.page-head [data-status="running"]').waitFor();
  const run = await server.client.run("dragged");
  assert.ok((run.timeout_at ?? 0) > Date.now() + 50 * 60_000, JSON.stringify(run.deadlines));
});

test("the end is extended by keys, too", async () => {
  await server.client.start("steps", { run_id: "by-keys", input: { base: `${peer.url}/hang` } });
  const page = await browser.open();
  await page.goto(`${server.url}/runs/by-keys`);
  const before = (await server.client.run("by-keys")).timeout_at!;
  await page.locator(".handle").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByLabel("Extend by").press("Enter");
  await until("the limit to move", async () => (await server.client.run("by-keys")).timeout_at! > before);
});

test("a failed run is found by a filter, and retried", async () => {
  peer.route("/charge", (_, times) => (times === 1 ? { status: 422, body: { error: "declined" } } : { body: { paid: true } }));
  await server.client.start("failing", { run_id: "to-retry", input: { base: peer.url } });
  await reaches(server.client, "to-retry", "failed");
  const page = await browser.open();
  await page.goto(`${server.url}/runs`);
  await page.getByRole("button", { name: "failed", exact: true }).click();
  await page.waitForURL(/status=failed/);
  await page.locator(".filters select").first().selectOption("failing");
  await page.getByRole("link", { name: "to-retry" }).click();
  await page.locator(".way.recommended button").waitFor();
  await page.locator(".way button", { hasText: "Retry from what failed" }).click();
  await page.locator('.page-head [data-status="completed"]').waitFor();
});

test("a failed run is retried on its bar, by the recommended way", async () => {
  let isDeclined = true;
  peer.route("/charge", () => (isDeclined ? { status: 422, body: { error: "declined" } } : { body: { paid: true } }));
  await server.client.start("failing", { run_id: "on-the-bar", input: { base: peer.url } });
  await reaches(server.client, "on-the-bar", "failed");
  const { recommended } = await server.client.resumeOptions("on-the-bar");
  isDeclined = false;
  const page = await browser.open();
  await page.goto(`${server.url}/runs/on-the-bar`);
  await page.locator(".timeline .budget").getByRole("button", { name: "Retry" }).click();
  await page.locator('.page-head [data-status="completed"]').waitFor();
  const { items } = await server.client.events("on-the-bar");
  assert.equal(items.find(({ kind }) => kind === "run_retried")?.mode, recommended);
  assert.equal(await page.locator(".timeline .budget button").count(), 0);
});

test("runs are listed by the time they have left, in a view that is an address", async () => {
  for (const [id, timeout_ms] of [["sorted-b", 500_000], ["sorted-a", 400_000], ["sorted-c", 600_000]] as const) await server.client.start("steps", { run_id: id, timeout_ms, input: { base: `${peer.url}/hang` } });
  const page = await browser.open();
  await page.goto(`${server.url}/runs`);
  await page.getByRole("link", { name: "Nearest deadline" }).click();
  const order = async () => (await page.locator("td.at-run").allTextContents()).map((text) => text.trim()).filter((id) => id.startsWith("sorted-"));
  await until("the runs in their order", async () => (await order()).join() === "sorted-a,sorted-b,sorted-c");
  // The address alone is enough.
  const again = await browser.open();
  await again.goto(page.url());
  await again.locator('.views [aria-current="true"]', { hasText: "Nearest deadline" }).waitFor();
  await page.getByLabel("Id begins with").fill("sorted-b");
  await page.keyboard.press("Enter");
  await page.waitForURL(/id_prefix=sorted-b/);
  await until("the one that is left", async () => (await order()).join() === "sorted-b");
});

test("a filter that is typed is applied without leaving its field", async () => {
  for (const id of ["typed-1", "typed-2"]) await server.client.start("loop", { run_id: id, input: {} });
  const page = await browser.open();
  await page.goto(`${server.url}/runs`);
  await page.locator("tbody tr").first().waitFor();
  await page.getByLabel("Id begins with").pressSequentially("typed-", { delay: 20 });
  await page.waitForURL(/id_prefix=typed-/);
  await until("the two runs to be listed", async () => (await page.locator("tbody tr").count()) === 2);
  assert.equal(await page.getByLabel("Id begins with").inputValue(), "typed-");
  // The link for everything empties the field, too.
  await page.getByRole("link", { name: "All", exact: true }).click();
  await until("the field to be empty", async () => (await page.getByLabel("Id begins with").inputValue()) === "");
});

test("many runs are cancelled at once", async () => {
  for (const id of ["many-1", "many-2"]) await server.client.start("steps", { run_id: id, input: { base: `${peer.url}/hang` } });
  const page = await browser.open();
  await page.goto(`${server.url}/runs?id_prefix=many-`);
  await page.getByLabel("Select run many-1").check();
  await page.getByLabel("Select run many-2").check();
  await page.getByRole("button", { name: "Cancel …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel 2 selected runs" }).click();
  await page.getByText("Cancel: 2 done, 0 skipped, 0 refused.").waitFor();
  assert.equal((await server.client.run("many-1")).status, "cancelled");
});

test("before all runs of a filter are controlled, it is said which they are", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs?id_prefix=many-&status=cancelled`);
  await page.getByText("all runs that match the filter").waitFor();
  await page.getByRole("button", { name: "Pause …" }).click();
  await page.getByRole("dialog").getByText("status cancelled; id begins with many-").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
});

test("a link leads to a token", async () => {
  await server.client.start("wide", { run_id: "linked", input: { items: [1, 2, 3] } });
  await reaches(server.client, "linked", "completed");
  const page = await browser.open();
  await page.goto(`${server.url}/runs/linked/tokens/t3`);
  await page.getByRole("complementary", { name: "Token t3" }).waitFor();
  // Its branch is opened for it.
  await page.locator('.timeline .lane.chosen:has-text("t3")').waitFor();
  await page.getByRole("link", { name: "follows t1" }).click();
  await page.waitForURL(`${server.url}/runs/linked/tokens/t1`);
  await page.goBack();
  await page.getByRole("complementary", { name: "Token t3" }).waitFor();
  await page.goto(`${server.url}/runs/linked/tokens/t999`);
  await page.getByText("This run has no such token.").waitFor();
});

test("an open breaker says when it is tried again, and is reset", async () => {
  await openBreaker(server.client, peer);
  const page = await browser.open();
  await page.goto(`${server.url}/breakers`);
  const row = page.locator("tr", { hasText: "shop:eu" });
  await row.locator('[data-status="open"]').waitFor();
  assert.match((await row.textContent())!, /3.* left/);
  await row.getByRole("button", { name: "Reset" }).click();
  await row.locator('[data-status="closed"]').waitFor();
  assert.equal((await server.client.breakers({})).items.find(({ key }) => key === "shop:eu")?.state, "closed");
});

test("the page of health has the figures and charts of the metrics", async () => {
  await server.client.start("timing", { run_id: "late", input: { base: peer.url } });
  await reaches(server.client, "late", "failed", "timed_out");
  const page = await browser.open();
  await page.goto(`${server.url}/health`);
  const figure = (title: string) => page.locator(".figure", { hasText: title }).locator(".value");
  await until("the metrics to have the timeouts", async () => (await page.getByRole("region", { name: "Timeouts by layer" }).textContent())!.includes("execution"));
  await page.getByRole("region", { name: "Lateness of timeouts" }).locator(".bars rect").first().waitFor();
  assert.match((await figure("Lateness, 99 %").textContent())!, /≤ \d+/);
  // The chart of rates has a point after the second reading.
  await page.locator(".chart.drawn canvas").waitFor();
  const started = Number((await figure("Runs started").textContent())!.replaceAll(",", ""));
  await server.client.start("loop", { run_id: "one-more", input: {} });
  await until("the figure to grow", async () => Number((await figure("Runs started").textContent())!.replaceAll(",", "")) > started);
});

test("the chart says when and how much, from the first point on", async () => {
  const page = await browser.open({ timezone: "Asia/Kolkata" });
  // To ten minutes: the point is from a moment before it is read.
  const there = (): string => new Date(Date.now() + 5.5 * 3_600_000).toISOString().slice(11, 15);
  const before = there();
  await page.goto(`${server.url}/health`);
  await page.locator(".chart.drawn").waitFor();
  const legend = (await page.locator(".u-legend").textContent())!;
  assert.match(legend, /at:?\s*\d\d:\d\d:\d\d.*started:?\s*\d+\.\d\d \/s/);
  assert.ok([before, there()].some((time) => legend.includes(time)), `${legend} has ${before}`);
});

test("versions are compared, by what changed where", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/workflows/checkout?view=versions`);
  const row = (path: string) => page.locator("tr", { has: page.getByRole("cell", { name: path, exact: true }) });
  await row("/timeout").waitFor();
  assert.deepEqual(await row("/timeout").locator("td").allTextContents(), ["/timeout", "8h", "6h"]);
  assert.deepEqual(await row("/tags").locator("td").allTextContents(), ["/tags", '["shop"]', "absent"]);
  assert.equal(await page.locator("tbody tr").count(), 2);
});

test("a version that is compared is never the one that is shown, and one that comes meanwhile can be opened", async () => {
  const { timeout: _, ...document } = checkout;
  await server.client.put("workflows", { ...document, id: "grows", timeout: "1h" });
  const page = await browser.open();
  await page.goto(`${server.url}/workflows/grows?view=versions`);
  await page.getByText("There is one version only.").waitFor();
  await server.client.put("workflows", { ...document, id: "grows", timeout: "2h" });
  const version = page.locator(".page-head select");
  await version.locator("option", { hasText: "2 (newest)" }).waitFor({ state: "attached" });
  await version.selectOption("2");
  await page.getByRole("columnheader", { name: "Version 2" }).waitFor();
  await page.getByRole("cell", { name: "2h", exact: true }).waitFor();
  await version.selectOption("1");
  await page.getByRole("columnheader", { name: "Version 1" }).waitFor();
  await page.getByRole("cell", { name: "2h", exact: true }).waitFor();
  assert.deepEqual(await page.locator("thead th").allTextContents(), ["Where", "Version 2", "Version 1"]);
});

test("nothing is lost when the server is restarted", async () => {
  await server.client.start("review", { run_id: "over-a-restart", input: { title: "x", amount: 1 } });
  const waiting = await reaches(server.client, "over-a-restart", "waiting");
  const gate = waiting.deadlines.find(({ kind }) => kind === "gate")!.gate_id!;
  const page = await browser.open({ height: 300 });
  await page.goto(`${server.url}/runs/over-a-restart?view=events`);
  await page.locator('.event[data-kind="gate_opened"]').waitFor();
  await server.stop();
  await page.getByText("The connection to Curfew is lost.").waitFor();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  const { y } = (await page.locator(".banner").boundingBox())!;
  assert.ok(y >= 0 && y < 100, `the banner is at ${y}`);
  await server.start();
  await server.client.decide("over-a-restart", gate, { choice: "approve" });
  await page.locator('.page-head [data-status="completed"]').waitFor();
  await page.locator('.event[data-kind="run_completed"]').waitFor();
  assert.equal(await page.getByText("The connection to Curfew is lost.").count(), 0);
  const shown = await page.locator(".event .seq").allTextContents();
  const stored = (await server.client.events("over-a-restart", { limit: 1_000 })).items.map(({ seq }) => String(seq));
  assert.deepEqual(shown.reverse(), stored);
});
