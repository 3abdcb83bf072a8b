// The same sign-up in Cloudflare Workflows and in Curfew, against the same services: the calls and the outcome are the same.
import { isDeepStrictEqual } from "node:util";
import { quick, readDocument } from "../documents.mjs";
import { ended, until } from "../waiting.mjs";
import { startServices } from "./services.mjs";

const CONFIRM_WITHIN_MS = 2_000;
const signup = readDocument("./signup.json", import.meta.url);
/** The confirmation may take 2 s instead of three days. */
const quickSignup = quick(signup, { "/nodes/3/wait/timeout": `${CONFIRM_WITHIN_MS}ms` });

const EMAIL = "ada@example.com";

/** What a service saw, without the keys, which each engine makes in its own way. @param {import("../service.mjs").Service} service */
const seenBy = ({ calls }) => calls.map(({ name, body }) => [name, body]);

/**
 * Both at once: started, confirmed as soon as the mail is there, awaited.
 * @param {string} workflowId
 * @param {boolean} isConfirmed
 * @returns {import("../example.mjs").Scenario<import("./services.mjs").Services>["play"]}
 */
const signUp = (workflowId, isConfirmed) => async (client, services) => {
  const { ofWorkflows, workflows } = services;
  const { id: runId } = await client.start(workflowId, { input: { base_url: services.url, email: EMAIL } });
  const instanceId = await workflows.create({ base_url: ofWorkflows.url, email: EMAIL });
  if (isConfirmed) {
    const mailed = (/** @type {import("../service.mjs").Service} */ { calls }) => calls.some(({ name }) => name === "POST /mails");
    await until("the mail of Curfew", () => mailed(services));
    await client.signal(runId, "email-confirmed", { code: "4711" });
    await until("the mail of Workflows", () => mailed(ofWorkflows));
    await workflows.sendEvent(instanceId, "email-confirmed", { code: "4711" });
  }
  const [run, instance] = await Promise.all([ended(client, runId), workflows.ended(instanceId)]);
  const [ofCurfew, ofOther] = [seenBy(services), seenBy(ofWorkflows)];
  return {
    runId,
    facts: {
      workflows: [instance.status, instance.output],
      "same output": isDeepStrictEqual(run.output, instance.output),
      "same calls": isDeepStrictEqual(ofCurfew, ofOther) || ofOther,
    },
  };
};

const account = `account-of-${EMAIL}`;

/** @type {import("../example.mjs").Example<import("./services.mjs").Services>} */
export const example = {
  documents: [signup, quickSignup],
  startServices,
  scenarios: [
    {
      title: "The account service fails twice, the mail is confirmed: both engines make the same five calls.",
      services: { failures: 2 },
      play: signUp("signup", true),
      expected: {
        status: "completed",
        output: { outcome: "active", account },
        calls: ["POST /accounts", "POST /accounts", "POST /accounts", "POST /mails", "POST /activations"],
        facts: { workflows: ["complete", { outcome: "active", account }], "same output": true, "same calls": true },
      },
    },
    {
      title: "The mail is not confirmed in time (2 s here, three days in the document and in the class): both close the account.",
      services: { confirmWithinMs: CONFIRM_WITHIN_MS },
      play: signUp("signup-quick", false),
      expected: {
        status: "completed",
        output: { outcome: "closed", account },
        calls: ["POST /accounts", "POST /mails", "POST /closures"],
        facts: { workflows: ["complete", { outcome: "closed", account }], "same output": true, "same calls": true },
      },
    },
  ],
};
