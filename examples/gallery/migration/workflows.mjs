// Cloudflare Workflows on this machine: signup.ts in workerd, by miniflare, which comes with wrangler.
import { readFileSync } from "node:fs";
import { transform } from "esbuild";
import { Log, LogLevel, Miniflare } from "miniflare";
import { until } from "../waiting.mjs";

const WORKER = "signup";
const ENDED = ["complete", "errored", "terminated"];

/**
 * @typedef {object} Workflows
 * @property {(params: object) => Promise<string>} create
 * @property {(id: string, type: string, payload: object) => Promise<void>} sendEvent
 * @property {(id: string) => Promise<{status: string, output: any, error?: unknown}>} ended
 * @property {() => Promise<void>} close
 */

/** @param {{confirmWithinMs?: number}} [options] @returns {Promise<Workflows>} */
export async function startWorkflows({ confirmWithinMs } = {}) {
  const source = readFileSync(new URL("./signup.ts", import.meta.url), "utf8");
  const { code } = await transform(source, { loader: "ts", target: "es2024" });
  const miniflare = new Miniflare({
    host: "127.0.0.1",
    port: 0,
    // No request leaves this machine.
    cf: false,
    telemetry: { enabled: false },
    enableDevRegistry: false,
    logRequests: false,
    log: new Log(LogLevel.ERROR),
    workers: [
      {
        config: {
          name: WORKER,
          compatibilityDate: "2026-11-01",
          manifest: { mainModule: "signup.mjs", modulesRoot: "/", modules: { "signup.mjs": { type: "esm", contents: code } } },
          env: {
            SIGNUP: { type: "workflow", name: WORKER, worker: WORKER, exportName: "SignupWorkflow" },
            ...(confirmWithinMs === undefined ? {} : { CONFIRM_WITHIN_MS: { type: "text", value: String(confirmWithinMs) } }),
          },
          exports: { SignupWorkflow: { type: "workflow", name: WORKER } },
        },
      },
    ],
  });
  const { origin } = await miniflare.ready;
  /** @param {string} path @param {object} [body] @returns {Promise<any>} */
  const request = async (path, body) => {
    const reply = await fetch(`${origin}/signups${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`the Worker of the Workflow answered ${reply.status}: ${await reply.text()}`);
    return reply.json();
  };
  return {
    create: async (params) => (await request("", params)).id,
    sendEvent: async (id, type, payload) => void (await request(`/${id}/events/${type}`, payload)),
    // It has no long poll.
    ended: (id) =>
      until(`the end of instance ${id}`, async () => {
        const status = await request(`/${id}`);
        return ENDED.includes(status.status) && status;
      }),
    close: () => miniflare.dispose(),
  };
}
