// How pages look and read: light and dark, 360 px, keyboard, and what axe-core finds. Every page is looked at in every state of the scene.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { end, startBrowser, type Browser } from "./browser.ts";
import { PAGES } from "./pages.ts";
import { playScene, startPeer, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { wordy } from "./workflows.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await playScene(server.client, peer);
});
after(() => end(browser, server, peer));

async function show(page: Page, path: string, ready: string): Promise<void> {
  await page.goto(server.url + path);
  await page.locator(ready).first().waitFor();
}

/** What axe-core calls serious or critical. */
async function findings(page: Page): Promise<string[]> {
  // Not as a script tag, which the policy of the page refuses.
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }: { impact: string }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }: { id: string; nodes: { target: string[]; failureSummary: string }[] }) => `${id}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary.replace(/\s+/g, " ").slice(0, 160)})`).join("; ")}`);
  });
}

for (const dark of [false, true]) {
  test(`axe-core has no serious finding in ${dark ? "dark" : "light"}`, async () => {
    const page = await browser.open({ dark, reducedMotion: true });
    const found: string[] = [];
    for (const [name, path, ready] of PAGES) {
      await show(page, path, ready);
      found.push(...(await findings(page)).map((finding) => `${name}: ${finding}`));
    }
    await show(page, "/runs?workflow=review", "tbody tr");
    await page.getByRole("button", { name: "Start a run" }).click();
    await page.getByLabel("Title").waitFor();
    found.push(...(await findings(page)).map((finding) => `start: ${finding}`));
    assert.deepEqual(found, []);
  });
}

/** Notes by how much the page is wider than the window, in every frame: also in those that are drawn before everything is measured. */
function noteOverflow(): void {
  Object.assign(globalThis, { overflow: undefined });
  const note = () => {
    const { scrollWidth = 0, clientWidth = 0 } = document.documentElement ?? {};
    (globalThis as any).overflow = Math.max((globalThis as any).overflow ?? 0, scrollWidth - clientWidth);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}

/** After two more frames, so that at least one was noted with all that is there now. */
async function overflowOf(page: Page): Promise<number> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  return page.evaluate(() => (globalThis as any).overflow);
}

test("no page is wider than 360 px in any frame", async () => {
  const page = await browser.open({ width: 360, height: 740 });
  await page.addInitScript(noteOverflow);
  const wide: string[] = [];
  for (const [name, path, ready] of PAGES) {
    await show(page, path, ready);
    const overflow = await overflowOf(page);
    if (overflow !== 0) wide.push(`${name}: ${overflow} px too wide`);
  }
  assert.deepEqual(wide, []);
});

test("at 360 px the chosen tab is in sight, and lists show their last columns", async () => {
  const page = await browser.open({ width: 360, height: 740 });
  const right = async (name: string, role: "tab" | "button" | "link") => {
    const box = (await page.getByRole(role, { name }).first().boundingBox())!;
    assert.ok(box.x >= 0 && box.x + box.width <= 360, `${name}: ${box.x} to ${box.x + box.width}`);
  };
  await show(page, "/runs/timing-1?view=price", "tbody tr");
  await right("Price", "tab");
  const most = (await page.locator('td[data-label="At most"]', { hasText: /./ }).first().boundingBox())!;
  assert.ok(most.x >= 0 && most.x + most.width <= 360, `the last column of the price: ${most.x} to ${most.x + most.width}`);
  const height = async (cell: string) => (await page.getByRole("cell", { name: cell, exact: true }).first().boundingBox())!.height;
  await show(page, "/runs/wide-40?view=tokens", "tbody tr");
  assert.ok((await height("begin")) < 50, "a name of five letters is in one line");
  await show(page, "/runs/failing-1", ".way");
  const retry = (await page.locator(".budget .name .button").boundingBox())!;
  const name = (await page.locator(".budget .name").boundingBox())!;
  assert.ok(retry.x + retry.width <= name.x + name.width, "the button is not cut off");
  await show(page, "/breakers", "tbody tr");
  await right("Reset", "button");
  await show(page, "/workflows", "tbody tr");
  await right("start", "button");
});

test("a long name of the reader leaves the top in two rows at 360 px", async () => {
  const page = await browser.open({ width: 360, height: 740 });
  await page.route("**/v1/me", (route) => route.fulfill({ json: { name: "a-person-with-a-long-name@a-company-with-a-long-name.example.com", roles: ["read"], development: false } }));
  await show(page, "/runs", "tbody tr");
  await page.getByText("a-person-with").waitFor();
  const { height } = (await page.locator(".top").boundingBox())!;
  assert.ok(height < 90, `${height} px`);
});

test("labels of the scale do not run into each other, at any width", async () => {
  for (const width of [360, 700, 980, 1180, 1280, 1470]) {
    const page = await browser.open({ width });
    await show(page, "/runs/failing-1", ".timeline .tick-text");
    const overlaps = await page.evaluate(() => {
      const boxes = [...document.querySelectorAll(".timeline .head .tick-text")].map((label) => label.getBoundingClientRect());
      return boxes.slice(1).filter((box, index) => box.left < boxes[index]!.right + 4).length;
    });
    assert.equal(overlaps, 0, `${width} px`);
    await page.close();
  }
});

test("no text of a node is wider than the node, and its count lies beside the arrow", async () => {
  const page = await browser.open();
  for (const path of ["/runs/steps-live", "/runs/wide-40", `/workflows/${wordy.id}`]) {
    await show(page, path, ".node");
    const wide = await page.evaluate(() =>
      [...document.querySelectorAll<SVGGElement>(".node")].flatMap((node) => {
        const box = node.querySelector<SVGGraphicsElement>(".box")!.getBoundingClientRect();
        const middle = box.left + box.width / 2;
        const texts = [...node.querySelectorAll(".node-name, .node-kind")].filter((text) => text.getBoundingClientRect().right > box.right - 4);
        const counts = [...node.querySelectorAll(".node-count")].filter((text) => text.getBoundingClientRect().left < middle + 9);
        return [...texts, ...counts].map((text) => text.textContent);
      }),
    );
    assert.deepEqual(wide, [], path);
  }
});

test("a graph is seen as a whole, with what stands beside its nodes, also after the window became narrow", async () => {
  const page = await browser.open();
  await show(page, "/runs/loop-1", ".edge-label");
  const beyond = () =>
    page.evaluate(() => {
      const frame = document.querySelector(".graph-frame")!.getBoundingClientRect();
      return [...document.querySelectorAll(".graph-frame .box, .graph-frame text")].map((part) => part.getBoundingClientRect()).filter(({ left, right }) => left < frame.left || right > frame.right).length;
    });
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 740 });
    await until(`all of it to be seen at ${width} px`, async () => (await page.evaluate(() => innerWidth)) === width && (await beyond()) === 0);
  }
  // What was zoomed stays where it is.
  await page.getByRole("region", { name: "Details" }).getByRole("button", { name: "Zoom in" }).click();
  const zoomed = await page.locator(".graph-frame > g").getAttribute("transform");
  await page.setViewportSize({ width: 400, height: 740 });
  await page.waitForFunction(() => innerWidth === 400);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  assert.equal(await page.locator(".graph-frame > g").getAttribute("transform"), zoomed);
});

test("the line of now does not leave the timeline when the window becomes narrow", async () => {
  const page = await browser.open({ width: 1280 });
  await page.addInitScript(noteOverflow);
  // One of its own: those of the scene may have come to their limit meanwhile.
  await server.client.start("steps", { run_id: "narrowed", input: { base: `${peer.url}/hang` } });
  await show(page, "/runs/narrowed", ".timeline .now");
  await page.setViewportSize({ width: 360, height: 740 });
  await page.waitForFunction(() => innerWidth === 360);
  assert.equal(await overflowOf(page), 0);
});

test("dark follows the system, and the toggle overrides it and is kept", async () => {
  const page = await browser.open({ dark: true });
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await show(page, "/runs", "tbody tr");
  const dark = await background();
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  const light = await background();
  assert.notEqual(light, dark);
  await page.reload();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  assert.equal(await background(), light);
});

test("the keyboard reaches the content, the tabs, the timeline and the graph", async () => {
  const page = await browser.open();
  await show(page, "/runs/loop-1", ".node");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
  await page.getByRole("tab", { name: /Graph/ }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/view=events/);
  await page.keyboard.press("ArrowLeft");
  await page.locator(".node").first().waitFor();
  await page.getByPlaceholder("Find a node").fill("cou");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/tokens\/t\d+/);
  await page.locator(".timeline .name a").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.locator(".tip").waitFor();
  assert.match((await page.locator(".tip").textContent()) ?? "", /limit/);
});

test("a lane says where its limit comes from", async () => {
  const page = await browser.open();
  await show(page, "/runs/steps-live", '.timeline .lane:has-text("third")');
  await page.locator('.timeline .lane:has-text("second") .plot').hover();
  await page.getByText("from the node (5s)").waitFor();
  await show(page, "/runs/wide-40", '.timeline .lane:has-text("branch")');
  await page.locator('.timeline .lane:has-text("branch") .plot').hover();
  await page.locator(".tip strong", { hasText: "branch ×40" }).waitFor();
  await show(page, "/runs/steps-live", '.timeline .lane:has-text("third")');
  await page.locator(".timeline .budget .name").hover();
  await page.getByText("its workflow says 10m").waitFor();
});
