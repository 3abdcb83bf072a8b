// The callers of an example: for each a client of `curfew/client` with its token, if there are tokens.
import { createClient } from "curfew/client";

/**
 * @typedef {import("curfew/client").Client} Client
 * @typedef {Client & {as: (name: string) => Client}} Callers the client of `demo`, and those of the others by their names
 */

/**
 * @param {import("curfew/client").ClientOptions} options
 * @param {Record<string, string>} [tokens] by the name of the caller; one without a token of its own has that of `demo`
 * @returns {Callers}
 */
export function callersOf(options, tokens = {}) {
  /** @param {string} name @returns {Client} */
  const as = (name) => {
    const client = createClient({ ...options, token: tokens[name] ?? tokens["demo"] });
    return {
      ...client,
      // Without tokens Curfew is in development, where the name is that of the body.
      start: (workflowId, body, more) => client.start(workflowId, { by: name, ...body }, more),
      decide: (runId, gateId, body, more) => client.decide(runId, gateId, { by: name, ...body }, more),
    };
  };
  return { ...as("demo"), as };
}
