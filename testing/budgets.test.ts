// How fast the kit is. The limits hold the time of the CPU, because other programs may use its cores.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import { curfewTest } from "./index.ts";

const purchase = JSON.parse(readFileSync(new URL("../examples/purchase.json", import.meta.url), "utf8"));
const shop = curfewTest({ workflow: purchase })
  .mock({ action: "post", after: "300ms", result: { status: 201, headers: {}, body: { id: "x" } } })
  .people({ gate: "review", after: "1h", choice: "ship" });
const input = { base_url: "https://shop.example", order_id: "o-1", amount: 5_000 };

function cpuMs(action: () => void): number {
  const before = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function hold(t: TestContext, what: string, found: number, most: number): void {
  t.diagnostic(`${what}: ${found.toPrecision(3)} ms`);
  assert.ok(found < most, `${what}: ${found} ms, limit ${most} ms`);
}

test("1000 seeds of the order in less than 5 s", (t) => {
  const took = cpuMs(() => assert.equal(shop.everySeed(1_000, { input }).seeds, 1_000));
  hold(t, "1000 seeds", took, 5_000);
});

test("seven days of waiting take microseconds", (t) => {
  const asking = { id: "ask", timeout: "700h", nodes: [{ id: "approve", gate: { timeout: "600h" } }] };
  const runs = Array.from({ length: 90 }, () => curfewTest({ workflow: asking }).start());
  const took = cpuMs(() => runs.forEach((run) => run.advance("7d"))) / runs.length;
  hold(t, "advance(\"7d\")", took, 0.5);
  assert.ok(runs.every((run) => run.at_ms === 7 * 86_400_000 && run.status === "waiting"));
});

test("the tests of the order run in less than 2 s", (t) => {
  const suite = fileURLToPath(new URL("../examples/gallery/order/order.test.ts", import.meta.url));
  const report = `data:text/javascript,process.on("exit",()=>process.stderr.write("cpu "+JSON.stringify(process.cpuUsage())))`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", "--import", report, suite], {
    encoding: "utf8",
    // The runner of this file must not be taken for the one of that suite.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /# pass 1\d\n|ℹ pass 1\d\n/);
  const { user, system } = JSON.parse(stderr.slice(stderr.lastIndexOf("cpu ") + 4));
  hold(t, "the suite, with the start of Node", (user + system) / 1_000, 2_000);
});
