// A model that answers as researcher or editor, at a speed that is chosen for each field, and the judges.
import { modelRoute } from "../model.mjs";
import { startService } from "../service.mjs";

const FINDINGS = {
  history: "Tea came to Europe by ship in the seventeenth century.",
  botany: "Tea is made from one plant, Camellia sinensis.",
  trade: "Most tea is grown in Asia and in Kenya.",
  medicine: "Tea contains caffeine, and less of it than coffee has in a cup of the same size, which many people are glad to hear in the evening.",
  ritual: "Tea ceremonies differ from country to country, and some of them take hours, because the company counts for more than the drink.",
};

/**
 * @param {{slow?: string[], wordMs?: number}} [options] the fields whose researcher takes `wordMs` for each word
 */
export function startResearch({ slow = [], wordMs = 600 } = {}) {
  return startService({
    "POST /v1/chat/completions": modelRoute((messages) => {
      const system = messages.find(({ role }) => role === "system").content;
      const asked = messages.at(-1).content;
      const field = /Your field: (\w+)/.exec(system)?.[1];
      // The editor repeats what it was given, so that the report shows what arrived.
      if (field === undefined) return { text: `Report: ${asked.replaceAll("\n", " ")}` };
      const text = FINDINGS[/** @type {keyof typeof FINDINGS} */ (field)] ?? "Nothing is known.";
      return { text, wordMs: slow.includes(field) ? wordMs : 10 };
    }),
    "POST /judge": ({ judge, answer }) => ({ body: { accept: answer.startsWith("Report:"), reason: `${judge} has read it` } }),
  });
}
