// What an event says besides its kind, token and node: names and values for people.
import type { RunEvent } from "../../client/index.ts";
import { short } from "./safe_text.ts";
import { duration, moment, words } from "./words.ts";

const SHOWN_APART = new Set(["seq", "at", "kind", "token_id", "node_id", "workflow_run_id"]);

export const factsOf = (event: RunEvent): [name: string, value: string][] =>
  Object.entries(event)
    .filter(([name, value]) => !SHOWN_APART.has(name) && value !== null && value !== undefined)
    .map(([name, value]) => {
      // Unix milliseconds and lengths say nothing as they are.
      if (typeof value === "number" && name.endsWith("_ms")) return [words(name.replace(/(_duration)?_ms$/, "")), duration(value)];
      if (typeof value === "number" && name.endsWith("_at")) return [words(name), moment(value, event.at)];
      return [words(name), short(value, 160)];
    });
