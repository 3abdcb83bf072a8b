// What an example is, and how one of its scenarios is played: by the demonstrations and by the tests alike.
import { isDeepStrictEqual } from "node:util";
import { timeline } from "./timeline.mjs";
import { ended } from "./waiting.mjs";

/**
 * @template {import("./service.mjs").Service} S
 * @typedef {object} Scenario
 * @property {string} title
 * @property {any} [services] how the services behave
 * @property {boolean} [needsTokens] callers must have tokens of their own
 * @property {(client: import("./callers.mjs").Callers, services: S) => Promise<{runId: string, facts?: any, shown?: any}>} play `shown` is printed and not compared
 * @property {{status: string, output: any, calls?: string[], facts?: any}} expected
 */

/**
 * @template {import("./service.mjs").Service} S
 * @typedef {object} Example
 * @property {any[]} documents children first
 * @property {(options?: any) => Promise<S>} startServices
 * @property {Scenario<S>[]} scenarios
 * @property {Record<string, {roles: string[]}>} [callers] those that need tokens of their own, and their roles
 */

/**
 * @typedef {object} Played
 * @property {any} run
 * @property {any[]} tokens
 * @property {import("./service.mjs").Call[]} calls
 * @property {{status: string, output: any, calls?: string[], facts?: any}} seen to compare with `expected`
 * @property {any} [shown]
 */

/**
 * Starts the services, plays the scenario, waits for the end of its run.
 * @template {import("./service.mjs").Service} S
 * @param {Example<S>} example
 * @param {Scenario<S>} scenario
 * @param {import("./callers.mjs").Callers} client
 * @returns {Promise<Played>}
 */
export async function perform(example, scenario, client) {
  const services = await example.startServices(scenario.services);
  try {
    const { runId, facts, shown } = await scenario.play(client, services);
    const run = await ended(client, runId);
    const { items: tokens } = await client.tokens(runId, { limit: 1_000 });
    /** @type {Played["seen"]} */
    const seen = { status: run.status, output: run.output };
    if (scenario.expected.calls) seen.calls = services.calls.map(({ name }) => name);
    if (facts !== undefined) seen.facts = facts;
    return { run, tokens, calls: services.calls, seen, shown };
  } finally {
    await services.close();
  }
}

/**
 * The scenario as text, and whether it went as expected.
 * @param {Scenario<any>} scenario
 * @param {Played} played
 */
export function report({ title, expected }, { run, tokens, calls, seen, shown }) {
  const isExpected = isDeepStrictEqual(seen, expected);
  const lines = ["", title, "", ...timeline(run, tokens).map((line) => `  ${line}`), ""];
  const line = (/** @type {string} */ name, /** @type {string} */ text) => lines.push(`  ${name.padEnd(12)} ${text}`);
  if (calls.length > 0) line("calls", calls.map(({ name, aborted }) => (aborted ? `${name} (aborted)` : name)).join(", "));
  for (const [name, value] of Object.entries({ ...seen.facts, ...shown })) line(name, JSON.stringify(value));
  line("run", `${run.id} ${run.status}${run.error ? `, ${run.error.code}` : ""}`);
  line("output", JSON.stringify(run.output));
  if (isExpected) lines.push("  as expected");
  else lines.push("  NOT AS EXPECTED", `  expected     ${JSON.stringify(expected)}`, `  seen         ${JSON.stringify(seen)}`);
  return { isExpected, text: lines.join("\n") };
}
