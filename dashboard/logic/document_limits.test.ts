import assert from "node:assert/strict";
import { test } from "node:test";
import { limitsOf, patched, patchOf, written } from "./document_limits.ts";
import { msAt, positionOf, POSITIONS, rounded, scaleAround } from "./duration_scale.ts";

const document = {
  timeout: "10m",
  gate: { timeout_ms: 5_000 },
  timeouts: { step: 30_000, tool: "20s" },
  nodes: [
    { id: "a", timeout: "adaptive", gate: { timeout: "1h" } },
    { id: "b", wait: { sleep: "${state.ms}", timeout: null } },
    { id: "c", timeout: "1m30s" },
  ],
  transitions: [{ from_node_id: "a", to_node_id: "c", synchronization: { timeout: "2m" } }],
  tasks: [{ id: "t", timeout: "40s", steps: [{ ref: "s", timeout_override: "4s", action: { execution: { timeout: "3s", retry_policy: { total_timeout: "9s" } } } }] }],
  actions: [{ id: "x", execution: { timeout_ms: 250 }, implementation: { timeout: "5s" } }],
};

test("limits are found where documents have them, and nowhere else", () => {
  assert.deepEqual(
    limitsOf(document).map(({ pointer, ms }) => `${pointer} ${ms}`),
    [
      "/timeout 600000",
      "/gate/timeout_ms 5000",
      "/timeouts/step 30000",
      "/timeouts/tool 20000",
      "/nodes/0/gate/timeout 3600000",
      "/nodes/2/timeout 90000",
      "/transitions/0/synchronization/timeout 120000",
      "/tasks/0/timeout 40000",
      "/tasks/0/steps/0/timeout_override 4000",
      "/tasks/0/steps/0/action/execution/timeout 3000",
      "/tasks/0/steps/0/action/execution/retry_policy/total_timeout 9000",
      "/actions/0/execution/timeout_ms 250",
    ],
  );
  for (const odd of [undefined, null, 7, "text", [], { nodes: "many", timeout: -1 }, { nodes: [null, 3, { timeout: {} }], tasks: [{ steps: 7 }] }]) assert.deepEqual(limitsOf(odd), []);
});

test("a change is a patch, and the document itself stays", () => {
  const limits = limitsOf(document);
  const patch = patchOf(limits, new Map([["/timeout", 90_500], ["/timeouts/step", 1_000], ["/nodes/2/timeout", 90_000], ["/nowhere", 1]]));
  assert.deepEqual(patch, [
    { op: "replace", path: "/timeout", value: "90500ms" },
    { op: "replace", path: "/timeouts/step", value: 1_000 },
  ]);
  const changed = patched(document, patch) as typeof document;
  assert.equal(changed.timeout, "90500ms");
  assert.equal(changed.timeouts.step, 1_000);
  assert.equal(document.timeout, "10m");
  assert.deepEqual(patched(document, [{ op: "replace", path: "/nodes/9/timeout", value: 1 }, { op: "replace", path: "/__proto__/x", value: 1 }]), document);
});

test("durations are written as documents have them", () => {
  assert.deepEqual([0.2, 250, 60_000, 5_400_000, 86_400_000, 3_661_000].map(written), ["1ms", "250ms", "1m", "1h30m", "24h", "1h1m1s"]);
});

test("a slider covers a hundredth to a hundred times, and its middle is the length itself", () => {
  const scale = scaleAround(60_000);
  assert.equal(positionOf(60_000, scale), POSITIONS / 2);
  assert.equal(msAt(POSITIONS / 2, scale), 60_000);
  assert.equal(msAt(0, scale), 600);
  assert.equal(msAt(POSITIONS, scale), 6_000_000);
  assert.equal(positionOf(1, scale), 0);
  assert.equal(scaleAround(10 * 3_600_000).most, 30 * 86_400_000, "documents have no longer limit");
  assert.equal(scaleAround(60 * 86_400_000).most, 60 * 86_400_000);
  for (let position = 1; position <= POSITIONS; position += 1) assert.ok(msAt(position, scale) >= msAt(position - 1, scale), String(position));
  assert.deepEqual([17_384, 1_730, 4_444_000, 100_000_000, 0.2].map(rounded), [17_000, 1_700, 4_500_000, 100_800_000, 1]);
});
