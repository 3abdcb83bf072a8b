// Bounded memory and storage: the undo patches of a growing list, endpoints over many large tokens, and many children of a large
// workflow.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { workerdPid } from "../../bench/machine.ts";
import { resetPeak, peakMiB } from "../crash/process.ts";
import { check, oneTask, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ entry: "tests/workerd/workers/database-size.mjs" });
});
after(() => curfew.dispose());

/** The size of the SQLite database of a run's object. */
async function databaseSize(runId: string): Promise<number> {
  const response = await curfew.api("POST", `/database-size/${runId}`, {});
  assert.equal(response.status, 200, response.text);
  return response.json.bytes;
}

const loopWorkflow = (again: string, node: Record<string, unknown>, more: Record<string, unknown> = {}): WorkflowDocument =>
  workflow({
    timeout: "5m",
    nodes: [{ id: "work", ...node }, { id: "last", task_id: "last", output_mapping: {} }],
    transitions: [
      { id: "again", from_node_id: "work", to_node_id: "work", condition: again },
      { id: "on", from_node_id: "work", to_node_id: "last", priority: 1 },
    ],
    ...more,
  });

test("a list that grows 400 times by 2 KB stores at most four times the bytes written", async () => {
  const document = loopWorkflow(
    "size(state.list) < 400",
    { task_id: "work", output_mapping: { "state.list": "${(has(state.list) ? state.list : []) + [result]}" } },
    {
      tasks: [
        { id: "work", steps: [set({ text: "${input.text}" })] },
        { id: "last", steps: [set({ done: true })] },
      ],
    },
  );
  const text = "x".repeat(2 * KIB - 12);
  await curfew.store(document);
  const run = await curfew.ended(await curfew.start(document.id, { text }), 150_000);
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal((run.context.state as { list: unknown[] }).list.length, 400);
  const bytes = await databaseSize(run.id);
  console.log(`a list of 400 x 2 KB: ${bytes} bytes of SQLite, ${(bytes / (400 * 2 * KIB)).toFixed(2)} times what was written`);
  assert.ok(bytes <= 4 * 400 * 2 * KIB, `${bytes} bytes`);
  // And it can be undone: to the state of the loop's last iteration.
  const restarted = await curfew.api("POST", `/v1/runs/${run.id}/restart`, { from_node_id: "work" });
  assert.equal(restarted.status, 200, restarted.text);
  const again = await curfew.ended(run.id);
  assert.equal(again.status, "completed", JSON.stringify(again.error));
  assert.ok(JSON.stringify(again.context) === JSON.stringify(run.context));
  assert.equal(again.counts["completed"], 403);
});

test("300 tokens of 400 KB: every endpoint responds in bounded memory", async (t) => {
  const document = loopWorkflow(
    "state.n < 300",
    { task_id: "work", output_mapping: { "state.n": "${has(state.n) ? state.n + 1 : 1}" } },
    {
      tasks: [
        { id: "work", steps: [set({ text: "${input.text}" })] },
        { id: "last", steps: [check("false", "not today")] },
      ],
    },
  );
  await curfew.store(document);
  const run = await curfew.ended(await curfew.start(document.id, { text: "x".repeat(400 * KIB) }), 150_000);
  assert.equal(run.status, "failed", JSON.stringify(run.error));
  const pid = workerdPid();
  const before = resetPeak(pid);
  const path = `/v1/runs/${run.id}`;
  const get = async (name: string) => {
    const response = await curfew.api("GET", `${path}/${name}`);
    assert.equal(response.status, 200, `${name}: ${response.text.slice(0, 1_000)}`);
    return response;
  };
  assert.equal((await get("resume")).json.failed_tokens.length, 1);
  assert.deepEqual((await get("deliverable")).json.completed_nodes, ["work"]);
  assert.deepEqual((await get("timeouts")).json.items, []);
  assert.ok((await get("events")).json.items.length >= 1);
  const first = await get("tokens?limit=1000");
  assert.ok(first.text.length < 4 * MIB, `a page of ${first.text.length} characters`);
  assert.notEqual(first.json.next_cursor, null);
  assert.equal((await curfew.tokens(run.id)).length, 301);
  const retried = await curfew.api("POST", `${path}/retry`, { mode: "discard_and_retry" });
  assert.equal(retried.status, 200, retried.text);
  assert.equal((await curfew.ended(run.id)).status, "failed");
  const restarted = await curfew.api("POST", `${path}/restart`, { from_node_id: "last" });
  assert.equal(restarted.status, 200, restarted.text);
  const last = await curfew.ended(run.id);
  assert.equal((last.context.state as { n: number }).n, 300);
  const peak = peakMiB(pid);
  if (before === undefined || peak === undefined) return t.diagnostic("this machine does not say what a process holds");
  console.log(`endpoints over 120 MB of tokens: ${before.toFixed(0)} MiB before, at most ${peak.toFixed(0)} MiB`);
  assert.ok(peak - before < 96, `${before} MiB before, at most ${peak} MiB`);
});

test("150 children of a large workflow need little more memory than 150 of a small one", async (t) => {
  const many = (child: WorkflowDocument) =>
    workflow({
      timeout: "2m",
      nodes: [{ id: "a" }, { id: "call", workflow_id: child.id }, { id: "z" }],
      transitions: [
        { id: "each", from_node_id: "a", to_node_id: "call", spawn_count: 150 },
        { id: "all", from_node_id: "call", to_node_id: "z", synchronization: { strategy: "all", sibling_group: "each" } },
      ],
    });
  // A fresh process for each: a process keeps the memory it has used.
  const peakWith = async (child: WorkflowDocument): Promise<number | undefined> => {
    const own = await startCurfew();
    try {
      const parent = many(child);
      await own.store(child);
      await own.store(parent);
      const run = await own.ended(await own.start(parent.id), 100_000);
      assert.equal(run.status, "completed", JSON.stringify(run.error));
      assert.equal(run.counts["completed"], 152);
      return peakMiB(workerdPid());
    } finally {
      await own.dispose();
    }
  };
  const small = await peakWith(oneTask([set({ done: true })]));
  const large = await peakWith(oneTask([set({ done: true }), set({ text: "x".repeat(200 * KIB) }, { condition: "false" })]));
  if (small === undefined || large === undefined) return t.diagnostic("this machine does not say what a process holds");
  console.log(`150 children: at most ${small.toFixed(0)} MiB small, ${large.toFixed(0)} MiB large`);
  assert.ok(large <= 1.5 * small, `${small} MiB and ${large} MiB`);
});
