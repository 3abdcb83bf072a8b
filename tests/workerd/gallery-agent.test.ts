// examples/gallery/agent: tools of a real MCP server, people who answer, allow, deny and extend.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { example } from "../../examples/gallery/agent/demo.mjs";
import { clientOf, storeDocuments, testScenarios } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
  await storeDocuments(clientOf(curfew), example);
});
after(() => curfew.dispose());

testScenarios("agent", example, () => clientOf(curfew), async ({ run, tokens, calls }, index) => {
  assert.deepEqual(calls.map(({ name }) => name), Array.from({ length: 4 }, () => "POST /v1/chat/completions"), "the model had four turns");
  assert.equal(new Set(calls.map(({ key }) => key)).size, 4, "every turn has an idempotency key of its own");
  // The last turn sees every call with its result, as the protocol of tools demands.
  const { messages, tools } = calls.at(-1)!.body;
  assert.deepEqual(messages.map(({ role }: { role: string }) => role), ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "tool"]);
  const asked = messages.flatMap(({ tool_calls = [] }: any) => tool_calls.map(({ id }: { id: string }) => id));
  assert.deepEqual(messages.flatMap(({ tool_call_id = [] }: any) => tool_call_id), asked);
  assert.deepEqual(tools.map((tool: any) => tool.function.name), ["find_orders", "refund_order", "ask_person"]);
  const visited = tokens.map(({ node_id }) => node_id);
  assert.equal(visited.includes("denied"), index === 1);
  if (index === 2) {
    const [paused] = await curfew.events(run.id, "run_paused");
    assert.equal(paused?.["cause"], "workflow_timeout");
  }
});
