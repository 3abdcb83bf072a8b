// Several researchers at once: the first three findings are enough, and a deadline keeps what the late ones had written.
import { quick, readDocument } from "../documents.mjs";
import { ended } from "../waiting.mjs";
import { startResearch } from "./services.mjs";

const judges = readDocument("../../judges.json", import.meta.url);
const panel = readDocument("./research-panel.json", import.meta.url);
/** The join waits for 2.5 s instead of a minute. */
const quickPanel = quick(panel, { "/transitions/1/synchronization/timeout": "2500ms" });

const question = "What should a guest know about tea?";
const reviewers = ["strict", "kind", "young"];

/** The words that a branch had written when it was ended, by its researcher. @param {any[]} tokens @param {any[]} records */
function partialTexts(tokens, records) {
  const researcherOf = new Map(tokens.map(({ id, branch }) => [id, branch?.item]));
  const artifacts = records.flatMap(({ partial_artifacts }) => partial_artifacts);
  return Object.fromEntries(artifacts.map(({ token_id, text }) => [researcherOf.get(token_id), text]));
}

/** The researchers by the end of their branch. @param {any[]} tokens */
function researchersBy(tokens) {
  /** @type {Record<string, string[]>} */
  const ends = {};
  for (const { node_id, status, branch } of tokens) if (node_id === "find") (ends[status] ??= []).push(branch.item);
  return ends;
}

/** @type {import("../example.mjs").Example<import("../service.mjs").Service>} */
export const example = {
  documents: [judges, panel, quickPanel],
  startServices: startResearch,
  scenarios: [
    {
      title: "Three of five answer at once: the calls to the two slow ones are aborted.",
      services: { slow: ["medicine", "ritual"] },
      play: async (client, { url }) => {
        const researchers = ["medicine", "history", "ritual", "botany", "trade"];
        const { id: runId } = await client.start("research-panel", { input: { base_url: url, model: "demo", question, researchers, judges: reviewers } });
        await ended(client, runId);
        const { items: tokens } = await client.tokens(runId, { limit: 1_000 });
        return { runId, facts: researchersBy(tokens) };
      },
      expected: {
        status: "completed",
        output: {
          report:
            "Report: history: Tea came to Europe by ship in the seventeenth century. botany: Tea is made from one plant, Camellia sinensis. trade: Most tea is grown in Asia and in Kenya.",
          accepted: true,
          researchers: ["history", "botany", "trade"],
        },
        facts: { cancelled: ["medicine", "ritual"], completed: ["history", "botany", "trade"] },
      },
    },
    {
      title: "Only two of five answer in time (2.5 s here, 1 min in the document): the report is written from two, and the words of the others are kept.",
      services: { slow: ["medicine", "ritual", "trade"] },
      play: async (client, { url }) => {
        const researchers = ["medicine", "history", "ritual", "botany", "trade"];
        const { id: runId } = await client.start("research-panel-quick", { input: { base_url: url, model: "demo", question, researchers, judges: reviewers } });
        await ended(client, runId);
        const { items: tokens } = await client.tokens(runId, { limit: 1_000 });
        const { items: records } = await client.timeouts(runId);
        const partial = partialTexts(tokens, records);
        // How many words there are depends on the machine; that they are the beginning does not.
        const begins = Object.fromEntries(Object.entries(partial).map(([researcher, text]) => [researcher, text.split(" ")[0]]));
        const scopes = records.map(({ timeout_event }) => timeout_event.scope);
        return { runId, facts: { ...researchersBy(tokens), begins, scopes }, shown: { kept: partial } };
      },
      expected: {
        status: "completed",
        output: {
          report: "Report: history: Tea came to Europe by ship in the seventeenth century. botany: Tea is made from one plant, Camellia sinensis.",
          accepted: true,
          researchers: ["history", "botany"],
        },
        facts: {
          timed_out: ["medicine", "ritual", "trade"],
          completed: ["history", "botany"],
          begins: { medicine: "Tea", ritual: "Tea", trade: "Most" },
          scopes: ["sync"],
        },
      },
    },
  ],
};
