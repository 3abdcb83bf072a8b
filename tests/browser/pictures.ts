// The pictures of README and docs, written to docs/images.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { startBrowser } from "./browser.ts";
import { reaches, startPeer, until } from "./scene.ts";
import { startServer } from "./server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const output = join(root, "docs", "images");
const approval = JSON.parse(readFileSync(join(root, "examples", "approval.json"), "utf8"));

const call = { id: "call", kind: "http_request", implementation: { method: "POST", url: "${input.url}" } };
const calls = (id: string, path: string, more: object) => ({ id, action_id: "call", input_mapping: { url: `\${input.base}${path}` }, ...more });

const order = {
  id: "order",
  description: "Reserves stock, asks three suppliers, charges the card, has the shipment approved and ships.",
  timeout: "1h",
  input_schema: { type: "object", required: ["base"], properties: { base: { type: "string", default: "https://shop.example.com" }, suppliers: { type: "array", maxItems: 3, default: [1_300, 2_000, 2_700] } } },
  nodes: [
    calls("reserve", "/slow/1000", { timeout: "10s" }),
    { ...calls("quote", "", { timeout: "5s" }), input_mapping: { url: "${input.base}/slow/${supplier}" } },
    { id: "best" },
    calls("charge", "/charge", { timeout: "3s", on_timeout: "retry", max_retries: 2 }),
    { id: "approve", gate: { prompt: "Ship order 4711 for 1290 euros?", choices: ["ship", "hold"], timeout: "30m", on_timeout: "fail" } },
    calls("ship", "/slow/750", { timeout: "20s" }),
  ],
  transitions: [
    { id: "ask-suppliers", from_node_id: "reserve", to_node_id: "quote", foreach: { collection: "input.suppliers", item_var: "supplier" } },
    {
      from_node_id: "quote",
      to_node_id: "best",
      synchronization: { strategy: "all", sibling_group: "ask-suppliers", timeout: "20s", merge: { target: "state.quotes", strategy: "append" } },
    },
    { from_node_id: "best", to_node_id: "charge" },
    { from_node_id: "charge", to_node_id: "approve" },
    { from_node_id: "approve", to_node_id: "ship", condition: "state.approve.choice == 'ship'" },
  ],
  on_no_match: "end",
  actions: [call],
};

const [server, peer, browser] = await Promise.all([startServer(), startPeer(), startBrowser()]);
try {
  const { client, url } = server;
  for (const workflow of [order, approval]) await client.put("workflows", workflow);
  // The first payment never gets an answer.
  peer.route("/charge", (_request, times) => new Promise((resolve) => void (times > 1 && setTimeout(resolve, 1_200, {}))));
  await client.start(approval.id, { run_id: "expense-88", input: { title: "a new chair", amount: 420 } });
  await client.start(approval.id, { run_id: "expense-89", input: { title: "a train to Ghent", amount: 186 } });
  await client.start("order", { run_id: "order-4711", input: { base: peer.url, suppliers: [1_300, 2_000, 2_700] } });
  await reaches(client, "order-4711", "waiting");
  await until("the list of gates", async () => (await client.gates({})).items.length === 3);

  const take = async (page: Page, name: string): Promise<void> => {
    await page.screenshot({ path: join(output, `${name}.png`) });
    await page.context().close();
  };
  const inbox = await browser.open({ width: 1120, height: 660 });
  await inbox.goto(`${url}/inbox`);
  for (const index of [0, 1, 2]) await inbox.locator(".gate .cuts").nth(index).waitFor();
  await take(inbox, "inbox");

  const { items } = await client.gates({});
  const gate = items.find(({ run_id }) => run_id === "order-4711");
  if (!gate) throw new Error("the order waits at no gate");
  await client.decide("order-4711", gate.id, { choice: "ship" });
  await reaches(client, "order-4711", "completed");
  const run = await browser.open({ width: 1120, height: 840, reducedMotion: true });
  await run.goto(`${url}/runs/order-4711`);
  await run.locator(".node").first().waitFor();
  await run.getByText("quote").first().click();
  await run.mouse.move(1, 1);
  await take(run, "run");

  const simulation = await browser.open({ width: 1120, height: 840 });
  await simulation.goto(`${url}/workflows/order?view=simulate`);
  await simulation.getByRole("slider", { name: "charge / call takes" }).focus();
  await simulation.keyboard.press("End");
  await simulation.getByRole("list", { name: "Limits that passed" }).first().waitFor();
  await simulation.evaluate(() => {
    scrollTo(0, 0);
    (document.activeElement as HTMLElement | null)?.blur();
  });
  await take(simulation, "workflow");
  for (const problem of [...browser.problems, ...browser.foreign]) console.error(problem);
} finally {
  await browser.close();
  await server.dispose();
  await peer.close();
}
