// A sign-up in Cloudflare Workflows. signup.json beside it does the same in Curfew.
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep, type WorkflowStepConfig } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";

interface Env {
  SIGNUP: Workflow<Params>;
  /** How long a confirmation may take, in milliseconds. */
  CONFIRM_WITHIN_MS?: string;
}

interface Params {
  base_url: string;
  email: string;
}

/** What the services answer. */
interface Answer {
  id: string;
}

const THREE_DAYS_MS = 72 * 60 * 60 * 1_000;
const RETRIED: WorkflowStepConfig = { retries: { limit: 3, delay: 200, backoff: "exponential" }, timeout: "10 seconds" };

export class SignupWorkflow extends WorkflowEntrypoint<Env, Params> {
  override async run(event: Readonly<WorkflowEvent<Params>>, step: WorkflowStep): Promise<{ outcome: string; account: string }> {
    const { base_url, email } = event.payload;
    const call = (name: string, path: string, body: object): Promise<Answer> =>
      // A step may run more than once: the key of its call is its own work.
      step.do(name, RETRIED, () => post(base_url + path, body, `${event.instanceId}/${name}`));

    const account = await call("create-account", "/accounts", { email });
    await step.sleep("settle", 1_000);
    await call("send-mail", "/mails", { to: email, account: account.id });
    let code: string;
    try {
      const timeout = Number(this.env.CONFIRM_WITHIN_MS ?? THREE_DAYS_MS);
      const confirmed = await step.waitForEvent<{ code: string }>("confirmed", { type: "email-confirmed", timeout });
      code = confirmed.payload.code;
    } catch {
      await call("close-account", "/closures", { account: account.id });
      return { outcome: "closed", account: account.id };
    }
    await call("activate", "/activations", { account: account.id, code });
    return { outcome: "active", account: account.id };
  }
}

async function post(url: string, body: object, key: string): Promise<Answer> {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  // Curfew decides by the class of the failure; here it is code.
  if (response.status >= 400 && response.status < 500) throw new NonRetryableError(`${url} answered ${response.status}`);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}

/** Workflows has a binding and no API of its own for programs outside: this is the part of it that the example needs. */
export default {
  async fetch(request, env): Promise<Response> {
    const [, id, events, type] = new URL(request.url).pathname.split("/").slice(1);
    if (id === undefined) {
      const instance = await env.SIGNUP.create({ params: await request.json() });
      return Response.json({ id: instance.id }, { status: 201 });
    }
    const instance = await env.SIGNUP.get(id);
    if (events === undefined || type === undefined) return Response.json(await instance.status());
    await instance.sendEvent({ type, payload: await request.json() });
    return Response.json({ received: type });
  },
} satisfies ExportedHandler<Env>;
