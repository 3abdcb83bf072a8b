// An agent with tools, under supervision: a person answers its question, decides about its dangerous call, and gives it more time.
import { readDocument } from "../documents.mjs";
import { decideNext, decisionsOf, ended, until } from "../waiting.mjs";
import { startSupport } from "./services.mjs";

const REQUEST = "Grace writes: my lamp arrived broken, I want my 80 back.";
const BROKEN = { choice: "answer", input: { text: "It was broken on arrival." } };

/** @param {import("./services.mjs").Support} support */
const inputOf = ({ url }) => ({ base_url: url, model: "demo", request: REQUEST });

/** @param {import("./services.mjs").Support} support @param {import("curfew/client").Client} client @param {string} runId */
async function factsOf(support, client, runId) {
  await ended(client, runId);
  return {
    tools: support.toolCalls.map((call) => [call.tool, call.arguments]),
    decided: await decisionsOf(client, runId),
  };
}

/** @type {import("../example.mjs").Example<import("./services.mjs").Support>} */
export const example = {
  documents: [readDocument("./support-agent.json", import.meta.url)],
  startServices: startSupport,
  scenarios: [
    {
      title: "The agent asks ada, wants to pay back 80, and bob allows 40.",
      play: async (client, support) => {
        const { id: runId } = await client.start("support-agent", { input: inputOf(support) });
        await decideNext(client.as("ada"), runId, "ask", BROKEN);
        const gate = await decideNext(client.as("bob"), runId, "allow", { choice: "allow", input: { amount: 40 }, comment: "it can be repaired" });
        return { runId, facts: { asked: /** @type {any} */ (gate.prompt).arguments, ...(await factsOf(support, client, runId)) } };
      },
      expected: {
        status: "completed",
        output: { outcome: "answered", answer: "About your lamp: It was broken on arrival. 40 were paid back for o-7." },
        facts: {
          asked: { order_id: "o-7", amount: 80 },
          tools: [
            ["find_orders", { customer: "grace" }],
            ["refund_order", { order_id: "o-7", amount: 40 }],
          ],
          decided: [
            ["ask", "answer", "ada"],
            ["allow", "allow", "bob"],
          ],
        },
      },
    },
    {
      title: "Bob denies the refund: the tool is not called, and the agent learns why.",
      play: async (client, support) => {
        const { id: runId } = await client.start("support-agent", { input: inputOf(support) });
        await decideNext(client.as("ada"), runId, "ask", BROKEN);
        await decideNext(client.as("bob"), runId, "allow", { choice: "deny", comment: "It was two years ago." });
        return { runId, facts: await factsOf(support, client, runId) };
      },
      expected: {
        status: "completed",
        output: { outcome: "answered", answer: "About your lamp: It was broken on arrival. A person refused this call. It was two years ago." },
        facts: {
          tools: [["find_orders", { customer: "grace" }]],
          decided: [
            ["ask", "answer", "ada"],
            ["allow", "deny", "bob"],
          ],
        },
      },
    },
    {
      title: "The agent is slow and its budget is small (1 s): the run waits for ada with its clocks stopped, and she extends it.",
      services: { thinkMs: 700 },
      play: async (client, support) => {
        const { id: runId } = await client.start("support-agent", { input: inputOf(support), timeout_ms: 1_000 });
        const gate = await until("the end of the budget", async () => {
          const run = await client.run(runId);
          return run.status === "paused" && run.gate;
        });
        await client.as("ada").decide(runId, gate.id, { choice: "extend", input: { by: "10m" } });
        await decideNext(client.as("ada"), runId, "ask", BROKEN);
        await decideNext(client.as("bob"), runId, "allow", { choice: "allow" });
        return { runId, facts: await factsOf(support, client, runId) };
      },
      expected: {
        status: "completed",
        output: { outcome: "answered", answer: "About your lamp: It was broken on arrival. 80 were paid back for o-7." },
        facts: {
          tools: [
            ["find_orders", { customer: "grace" }],
            ["refund_order", { order_id: "o-7", amount: 80 }],
          ],
          decided: [
            ["the run", "extend", "ada"],
            ["ask", "answer", "ada"],
            ["allow", "allow", "bob"],
          ],
        },
      },
    },
  ],
};
