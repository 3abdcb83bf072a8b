// Two approvals by two people, neither of whom is the one who asked.
import { quick, readDocument } from "../documents.mjs";
import { decideNext, decisionsOf, ended, openGate, until } from "../waiting.mjs";
import { startBank } from "./services.mjs";

const spending = readDocument("./spending.json", import.meta.url);
/** The manager is reminded after about a second instead of 12 hours. */
const quickSpending = quick(spending, { "/nodes/0/gate/remind_at": [0.00001] });

/** Status and code of the refusal. @param {Promise<unknown>} call @returns {Promise<unknown>} */
const refusalOf = (call) =>
  call.then(
    () => "accepted",
    ({ status, code }) => [status, code],
  );

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
        const { id: runId } = await client.as("ada").start("spending-quick", { input: { base_url: bank.url, title: "a laptop", amount: 1_500 } });
        const gate = await openGate(client, runId, "manager");
        const refused = await refusalOf(client.as("ada").decide(runId, gate.id, { choice: "approve" }));
        await until("the reminder", async () => (await openGate(client, runId, "manager")).reminded_at);
        await decideNext(client.as("bob"), runId, "manager", { choice: "approve" });
        const finance = await decideNext(client.as("carol"), runId, "finance", { choice: "approve" });
        await ended(client, runId);
        return {
          runId,
          facts: {
            refused,
            asked: [gate.prompt, finance.prompt],
            decided: await decisionsOf(client, runId),
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
        const { id: runId } = await client.as("ada").start("spending", { input: { base_url: bank.url, title: "a sofa", amount: 2_000 } });
        const bob = client.as("bob");
        await decideNext(bob, runId, "manager", { choice: "approve" });
        const first = await decideNext(bob, runId, "finance", { choice: "approve" });
        const second = await until("the second gate of finance", async () => {
          const gate = await openGate(client, runId, "finance");
          return gate.id !== first.id && gate;
        });
        await client.as("carol").decide(runId, second.id, { choice: "reject", comment: "the budget is spent" });
        await ended(client, runId);
        return { runId, facts: { decided: await decisionsOf(client, runId) } };
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
        const { id: runId } = await till.start("spending", { input: { base_url: bank.url, title: "tea", amount: 20 } });
        const gate = await openGate(client, runId, "manager");
        const refused = await refusalOf(till.decide(runId, gate.id, { choice: "approve" }));
        await decideNext(client.as("bob"), runId, "manager", { choice: "approve" });
        const { started_by } = await ended(client, runId);
        return { runId, facts: { refused, started_by } };
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
