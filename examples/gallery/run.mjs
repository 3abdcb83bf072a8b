// Plays all scenarios of one example and prints them. With CURFEW_URL the Curfew there is used; otherwise one is started on a free
// port, with tokens and a directory of its own, and ended again. `npm run example` runs this file.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CurfewError } from "curfew/client";
import { startLocal } from "../../cli/local/server.ts";
import { script, StepFailed } from "../../scripts/terminal.mjs";
import { root } from "../../scripts/toolchain.mjs";
import { callersOf } from "./callers.mjs";
import { perform, report } from "./example.mjs";

/**
 * @typedef {object} Target
 * @property {import("./callers.mjs").Callers} client
 * @property {boolean} hasTokens every caller of the example has a token of its own
 * @property {Promise<never>} [ended] rejects when the Curfew ends
 * @property {() => boolean} isInterrupted
 * @property {() => Promise<void>} close
 */

/** Callers of an example that names none. */
const CALLERS = { demo: { roles: ["admin"] }, ada: { roles: ["operate"] }, bob: { roles: ["operate"] } };

await script(async () => {
  const name = process.argv[2] ?? "";
  /** @type {{example: import("./example.mjs").Example<any>}} */
  const { example } = await import(`./${name}/demo.mjs`);
  const target = process.env.CURFEW_URL ? await connect(process.env.CURFEW_URL) : await startOwn(example);
  try {
    await Promise.race([playAll(example, target), ...(target.ended ? [target.ended] : [])]);
  } catch (error) {
    // Whatever a scenario was doing fails when its Curfew ends.
    if (target.isInterrupted()) throw new StepFailed("interrupted");
    throw error instanceof CurfewError || (error instanceof Error && error.constructor === Error) ? new StepFailed(error.message) : error;
  } finally {
    await target.close();
  }
});
// A scenario that was interrupted may have left a service behind.
process.exit();

/** @param {import("./example.mjs").Example<any>} example @param {Target} target */
async function playAll(example, { client, hasTokens }) {
  for (const document of example.documents) await client.put("workflows", document);
  let unexpected = 0;
  for (const scenario of example.scenarios) {
    if (scenario.needsTokens && !hasTokens) {
      console.log(`\n${scenario.title}\n\n  left out: it needs the tokens of a Curfew that is started for it (unset CURFEW_URL)`);
      continue;
    }
    const { isExpected, text } = report(scenario, await perform(example, scenario, client));
    console.log(text);
    if (!isExpected) unexpected += 1;
  }
  if (unexpected > 0) throw new StepFailed(`${unexpected} of ${example.scenarios.length} scenarios did not go as expected`);
  console.log("\nAll scenarios went as expected.");
}

/** @param {string} url @returns {Promise<Target>} */
async function connect(url) {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !["localhost", "127.0.0.1", "[::1]"].includes(parsed.hostname)) {
    throw new StepFailed("CURFEW_URL must be a Curfew on this machine, such as http://localhost:8787: the services of examples listen on loopback");
  }
  const token = process.env.CURFEW_TOKEN;
  const client = callersOf({ url: parsed.origin }, token ? { demo: token } : {});
  await client.request("GET", "/healthz", { retries: 0 }).catch(() => {
    throw new StepFailed(`no Curfew answers at ${parsed.origin}: start one with npm start, or unset CURFEW_URL`);
  });
  return { client, hasTokens: false, isInterrupted: () => false, close: async () => {} };
}

/** @param {import("./example.mjs").Example<any>} example @returns {Promise<Target>} */
async function startOwn({ callers = CALLERS }) {
  const names = Object.keys(callers);
  const tokens = Object.fromEntries(names.map((name) => [name, randomBytes(16).toString("hex")]));
  const setting = Object.fromEntries(Object.entries(callers).map(([name, { roles }]) => [tokens[name], { name, roles }]));
  const directory = mkdtempSync(join(tmpdir(), "curfew-example-"));
  let isInterrupted = false;
  try {
    const curfew = await startLocal({
      configuration: join(root, "wrangler.toml"),
      port: 0,
      persistTo: directory,
      variables: { CURFEW_TOKENS: JSON.stringify(setting) },
      note: (line) => console.log(line),
    });
    const close = async () => {
      await curfew.stop();
      rmSync(directory, { recursive: true, force: true });
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(signal, () => {
        isInterrupted = true;
        curfew.stop();
      });
    }
    const client = callersOf({ url: curfew.url }, tokens);
    return { client, hasTokens: true, ended: curfew.ended, isInterrupted: () => isInterrupted, close };
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}
