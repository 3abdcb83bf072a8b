// What is known before a run: the analysis at the nodes, worst case and price, and the simulation in the browser by the engine's wasm.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { end, startBrowser, type Browser } from "./browser.ts";
import { reaches, startPeer, storeAll, until, type Peer } from "./scene.ts";
import { startServer, type Server } from "./server.ts";

let server: Server;
let peer: Peer;
let browser: Browser;
before(async () => {
  [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
  await storeAll(server.client);
});
after(() => end(browser, server, peer));

const simulator = async (workflow: string): Promise<Page> => {
  const page = await browser.open();
  await page.goto(`${server.url}/workflows/${workflow}?view=simulate`);
  return page;
};
const outcome = (page: Page, status: string) => page.locator(`.simulated-head [data-status="${status}"]`);

test("warnings are at their nodes, and in a list that leads there", async () => {
  const analysis = await server.client.request("POST", "/v1/workflows/{workflow_id}/analyze", { path: { workflow_id: "checkout" }, body: {} });
  assert.ok(analysis.warnings.length >= 1, JSON.stringify(analysis));
  const page = await browser.open();
  await page.goto(`${server.url}/workflows/checkout`);
  const node = page.locator('[data-node="charge"]');
  await node.locator(".warning-text").waitFor();
  assert.match((await node.getAttribute("aria-label"))!, /may not match/);
  assert.match((await node.locator("title").textContent())!, /transition/);
  // The text is inside of the node.
  const [box, text] = [(await node.locator(".box").boundingBox())!, (await node.locator(".warning-text").boundingBox())!];
  assert.ok(text.x >= box.x && text.x + text.width <= box.x + box.width && text.y + text.height <= box.y + box.height + 1, JSON.stringify({ box, text }));
  assert.equal(await page.locator(".finding").count(), analysis.warnings.length);
  await node.click();
  await page.locator(".finding.current", { hasText: "may_not_match" }).waitFor();
  await page.getByRole("button", { name: "Mark the node approve" }).first().click();
  await page.locator('[data-node="approve"].chosen').waitFor();
  await page.goto(`${server.url}/workflows/loop`);
  await page.locator(".node").first().waitFor();
  assert.equal(await page.locator(".warning").count(), (await page.locator(".finding").count()) > 0 ? 1 : 0);
});

test("the page of a workflow says what a run can take, that of a run what it took", async () => {
  const { facts } = await server.client.request("POST", "/v1/workflows/{workflow_id}/analyze", { path: { workflow_id: "wide" }, body: {} });
  const page = await browser.open();
  await page.goto(`${server.url}/workflows/wide`);
  const figures = page.getByRole("region", { name: "What a run can take" });
  await figures.getByText("every run ends by itself").waitFor();
  assert.ok((await figures.textContent())!.includes(`${facts!.rows_written.happy!.toLocaleString("en")} to ${facts!.rows_written.worst!.toLocaleString("en")}`));

  await server.client.start("wide", { run_id: "priced", input: { items: [1, 2, 3] } });
  await reaches(server.client, "priced", "completed");
  await page.goto(`${server.url}/runs/priced?view=price`);
  const row = (name: string) => page.locator("tr", { has: page.getByRole("cell", { name, exact: true }) });
  await row("Price of a million").getByText(/about \$\d/).waitFor();
  // The facts of the workflow are a request of their own.
  const cells = await until("the bounds beside the estimate", async () => {
    const texts = await row("Rows written").locator("td").allTextContents();
    return texts.length === 4 && texts.every((text) => text !== "") && texts;
  });
  const [own, happy, worst] = cells.slice(1).map((text) => Number(text.replace(/[^\d]/g, "")));
  assert.equal(happy, facts!.rows_written.happy);
  assert.equal(worst, facts!.rows_written.worst);
  assert.ok(own! > 5 && own! < happy! * 2, cells.join(" | "));
});

test("a workflow is simulated in the page, and its sliders change the outcome", async () => {
  const page = await simulator("checkout");
  await outcome(page, "completed").waitFor();
  // Also the call of the catalogue has been found.
  await page.locator(".simulator .control", { hasText: "reserve" }).first().waitFor();
  await page.locator('.simulator .timeline .lane:has-text("charge")').waitFor();
  assert.equal(await page.locator(".simulator .timeline a").count(), 0, "simulated tokens have no pages");

  // The card service takes longer than its limit: by the keyboard, until the outcome is another.
  const takes = page.getByRole("slider", { name: "charge / charge takes" });
  await takes.focus();
  await page.keyboard.press("End");
  await outcome(page, "failed").waitFor();
  await page.getByRole("list", { name: "Limits that passed" }).getByText("charge").first().waitFor();
  await takes.press("Home");
  await outcome(page, "completed").waitFor();

  // A shorter limit has the same effect, and is written as a patch.
  await page.getByRole("textbox", { name: "charge / charge takes, as text" }).fill("5s");
  await page.getByRole("textbox", { name: "the limit of charge, as text" }).fill("2s");
  await outcome(page, "failed").waitFor();
  await page.getByText("The changed limits as a JSON Patch").click();
  await page.getByLabel("The changed limits as a JSON Patch", { exact: true }).getByText('"/nodes/2/timeout"').waitFor();
  await page.getByRole("button", { name: "back to 45s" }).click();
  await outcome(page, "completed").waitFor();

  // Nobody decides: the gate ends itself after four hours.
  await page.locator(".control", { hasText: "approve" }).getByRole("combobox").selectOption("");
  await page.locator(".simulated-head b", { hasText: "4h 00m" }).waitFor();
  await page.getByRole("list", { name: "Limits that passed" }).getByText("approve").waitFor();
});

test("a simulation waits for its input, and says what the engine refuses", async () => {
  const page = await simulator("checkout");
  await outcome(page, "completed").waitFor();
  await page.getByLabel("Amount").fill("many");
  await page.getByText("The simulation waits for the input.").waitFor();
  await page.getByLabel("Amount").fill("100");
  // Neither condition is true.
  await outcome(page, "failed").waitFor();
  await page.locator(".simulator .problem-box", { hasText: "no_transition" }).waitFor();
  await page.getByRole("textbox", { name: "the limit of the run, as text" }).fill("900h");
  await page.getByRole("alert").waitFor();
});

test("signals and failures of calls are simulated, too", async () => {
  await server.client.put("workflows", {
    id: "signalled",
    timeout: "2h",
    nodes: [{ id: "paid", wait: { signal: "payment", timeout: "1h" } }, { id: "tell", action_id: "stock" }],
    transitions: [{ from_node_id: "paid", to_node_id: "tell" }],
  } as { id: string });
  const page = await simulator("signalled");
  await outcome(page, "completed").waitFor();
  await page.getByRole("checkbox", { name: /payment/ }).uncheck();
  await outcome(page, "failed").waitFor();
  await page.getByRole("checkbox", { name: /payment/ }).check();
  await page.locator(".control", { hasText: "tell" }).getByRole("combobox").selectOption("fails");
  await page.locator('.simulator .timeline .lane:has-text("tell")').waitFor();
  await outcome(page, "failed").waitFor();
  await page.locator(".control", { hasText: "tell" }).getByRole("combobox").selectOption("fails_once");
  await outcome(page, "completed").waitFor();
});

test("people enter something that fits where a gate asks for it, and it can be written", async () => {
  const page = await simulator("paperwork");
  await outcome(page, "completed").waitFor();
  await page.getByText("What is entered").click();
  const entered = page.getByRole("textbox", { name: "What is entered at fill, as JSON" });
  assert.deepEqual(JSON.parse(await entered.inputValue()), { amount: 1, address: { city: "text" } });
  await entered.fill('{"amount": 501, "address": {"city": "Bern"}}');
  await page.locator(".simulator .problem-box", { hasText: "500" }).waitFor();
  await entered.fill('{"amount": 500, "address": {"city": "Bern"}}');
  await page.getByText("Output").click();
  await until("the problem to be gone", async () => (await page.locator(".simulator .problem-box").count()) === 0);
});

test("a simulation in the page agrees with the API", async () => {
  const page = await simulator("checkout");
  await outcome(page, "completed").waitFor();
  const shown = await page.locator(".simulated-head b").textContent();
  const answered = await server.client.request("POST", "/v1/simulate", {
    body: {
      workflow_id: "checkout",
      input: { amount: 120 },
      mocks: [{ after: "200ms", node: "reserve", result: { status: 200, headers: {}, body: {} } }, { after: "200ms", node: "charge", result: { status: 200, headers: {}, body: {} } }],
      people: [{ gate: "approve", after: "10m", choice: "approve" }],
    },
  });
  assert.equal(answered.run.status, "completed");
  assert.equal(shown, "10m 00s");
  assert.equal(answered.virtual_ms, 600_400);
});

test("only the worker of the engine may compile wasm, and it is loaded when it is needed", async () => {
  const page = await browser.open();
  const loaded: string[] = [];
  page.on("response", (response) => loaded.push(response.url()));
  page.on("request", (request) => loaded.push(request.url()));
  await page.goto(`${server.url}/workflows/checkout`);
  await page.locator(".node").first().waitFor();
  assert.deepEqual(loaded.filter((url) => /engine/.test(url)), []);
  const refused = await page.evaluate(() => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => "compiled", (error) => String(error)));
  assert.match(refused, /Content Security Policy|unsafe-eval/);
  await page.getByRole("tab", { name: "Simulate" }).click();
  await outcome(page, "completed").waitFor();
  const script = await until("the script of the worker", async () => page.workers().find((worker) => worker.url().includes("engine_worker"))?.url());
  const policy = (await fetch(script)).headers.get("content-security-policy");
  assert.equal(policy, "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'");
  const pagePolicy = (await fetch(`${server.url}/workflows/checkout`)).headers.get("content-security-policy");
  assert.match(pagePolicy!, /script-src 'self';/);
});
