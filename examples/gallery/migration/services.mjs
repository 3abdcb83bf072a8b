// Accounts and mails, once for each of the two engines, so that their calls can be compared.
import { startService } from "../service.mjs";
import { startWorkflows } from "./workflows.mjs";

/**
 * @typedef {object} Both
 * @property {import("../service.mjs").Service} ofWorkflows
 * @property {import("./workflows.mjs").Workflows} workflows
 *
 * @typedef {import("../service.mjs").Service & Both} Services the service that Curfew calls, and the other one with Workflows
 */

/** @param {number} failures how many calls to /accounts fail before one works */
function startAccounts(failures) {
  let failed = 0;
  return startService({
    "POST /accounts": ({ email }) => {
      if (failed < failures) {
        failed += 1;
        return { status: 503, body: { error: "try again" } };
      }
      return { status: 201, body: { id: `account-of-${email}` } };
    },
    "POST /mails": () => ({ status: 202 }),
    "POST /activations": () => ({ status: 200 }),
    "POST /closures": () => ({ status: 200 }),
  });
}

/** @param {{failures?: number, confirmWithinMs?: number}} [options] @returns {Promise<Services>} */
export async function startServices({ failures = 0, confirmWithinMs } = {}) {
  const [ofCurfew, ofWorkflows, workflows] = await Promise.all([
    startAccounts(failures),
    startAccounts(failures),
    startWorkflows(confirmWithinMs === undefined ? {} : { confirmWithinMs }),
  ]);
  return {
    ...ofCurfew,
    ofWorkflows,
    workflows,
    close: async () => void (await Promise.all([ofCurfew.close(), ofWorkflows.close(), workflows.close()])),
  };
}
