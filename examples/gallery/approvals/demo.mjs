// Two approvals by two people, neither of whom is the one who asked.
import { until } from "../client.mjs";
import { quick, readDocument } from "../documents.mjs";
import { startBank } from "./services.mjs";

const spending = readDocument("./spending.json", import.meta.url);
/** The manager is reminded after about a second instead of 12 hours. */
const quickSpending = quick(spending, { "/nodes/0/gate/remind_at": [0.00001] });

/** @type {import("../example.mjs").Example<import("../service.mjs").Service>} */
export const example = {
  documents: [spending, quickSpending],
  startServices: startBank,
  // `demo` stores the documents. `till` is a program: it may ask, and not decide.
  callers: {
    demo: { roles: ["admin"] },
    ada: { roles: ["start", "decide"] },
    bob: { roles: ["decide"] },
    carol: { roles: ["decide"] },
    till: { roles: ["start"] },
  },
  scenarios: [
    {
      title: "Ada asks for 1500 and may not approve it herself; bob, who is reminded, and carol do.",
      play: async (client, bank) => {
        const runId = await client.as("ada").start("spending-quick", { base_url: bank.url, title: "a laptop", amount: 1_500 });
        const gate = await client.openGate(runId, "manager");
        const own = await client.as("ada").decide(runId, gate, { choice: "approve" });
        await until("the reminder", async () => (await client.events(runId, "gate_reminded")).length > 0);
        await client.as("bob").decideNext(runId, "manager", { choice: "approve" });
        const finance = await client.as("carol").decideNext(runId, "finance", { choice: "approve" });
        await client.ended(runId);
        const decisions = await client.events(runId, "gate_decided");
        return {
          runId,
          facts: {
            refused: [own.status, own.json.error.code],
            asked: [gate.prompt, finance.prompt],
            decided: decisions.map(({ node_id, choice, by }) => [node_id, choice, by]),
            paid: bank.calls.map(({ body }) => body),
          },
        };
      },
      expected: {
        status: "completed",
        output: { outcome: "paid", payment: "payment-1" },
        calls: ["POST /payments"],
        facts: {
          refused: [403, "four_eyes"],
          asked: ["Spend 1500 on a laptop?", "bob approved 1500 for a laptop. Is there a budget?"],
          decided: [
            ["manager", "approve", "bob"],
            ["finance", "approve", "carol"],
          ],
          paid: [{ title: "a laptop", amount: 1_500, approved_by: ["bob", "carol"] }],
        },
      },
    },
    {
      title: "Bob approves twice: the second gate opens again for another person, and carol rejects.",
      play: async (client, bank) => {
        const runId = await client.as("ada").start("spending", { base_url: bank.url, title: "a sofa", amount: 2_000 });
        const bob = client.as("bob");
        await bob.decideNext(runId, "manager", { choice: "approve" });
        const first = await bob.decideNext(runId, "finance", { choice: "approve" });
        const second = await until("the second gate of finance", async () => {
          const gate = await client.openGate(runId, "finance");
          return gate.id !== first.id && gate;
        });
        await client.as("carol").decide(runId, second, { choice: "reject", comment: "the budget is spent" });
        await client.ended(runId);
        const decisions = await client.events(runId, "gate_decided");
        return { runId, facts: { decided: decisions.map(({ node_id, choice, by }) => [node_id, choice, by]) } };
      },
      expected: {
        status: "completed",
        output: { outcome: "declined", by: "carol", comment: "the budget is spent" },
        calls: [],
        facts: {
          decided: [
            ["manager", "approve", "bob"],
            ["finance", "approve", "bob"],
            ["finance", "reject", "carol"],
          ],
        },
      },
    },
    {
      title: "A program asks for 20 with a token that may only start: it cannot decide, bob can.",
      needsTokens: true,
      play: async (client, bank) => {
        const till = client.as("till");
        const runId = await till.start("spending", { base_url: bank.url, title: "tea", amount: 20 });
        const gate = await client.openGate(runId, "manager");
        const own = await till.decide(runId, gate, { choice: "approve" });
        await client.as("bob").decideNext(runId, "manager", { choice: "approve" });
        const { started_by } = await client.ended(runId);
        return { runId, facts: { refused: [own.status, own.json.error.code], started_by } };
      },
      expected: {
        status: "completed",
        output: { outcome: "paid", payment: "payment-1" },
        calls: ["POST /payments"],
        facts: { refused: [403, "forbidden"], started_by: "till" },
      },
    },
  ],
};
