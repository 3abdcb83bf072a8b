// @ts-check
// The same work in Cloudflare Workflows: a step per node, which calls the same Worker as the floor's steps.
import { DurableObject, WorkflowEntrypoint } from "cloudflare:workers";

/** @typedef {{nodes: number, branches: number, hops: number}} Work */

export class BenchWorkflow extends WorkflowEntrypoint {
  /**
   * @param {Readonly<import("cloudflare:workers").WorkflowEvent<Work>>} event
   * @param {import("cloudflare:workers").WorkflowStep} step
   */
  async run(event, step) {
    const { nodes, branches, hops } = event.payload;
    const peer = hops === 2 ? this.env.HOP : this.env.STEP;
    /** @param {number} node */
    const work = (node) =>
      step.do(`n${node}`, async () => {
        const response = await peer.fetch("http://step/", { method: "POST", body: JSON.stringify({ input: { node } }) });
        return response.text();
      });
    for (let node = 0; node < nodes; node += 1) await work(node);
    const outputs = await Promise.all(Array.from({ length: branches }, (_, branch) => work(branch)));
    // A notification: polling for the status would be measured as well.
    await this.env.WAITING.get(this.env.WAITING.idFromName(event.instanceId)).fetch("http://waiting/ended");
    return { outputs: outputs.length };
  }
}

/** Holds the request that waits for the end of one instance. */
export class Waiting extends DurableObject {
  #ended = Promise.withResolvers();

  /** @param {Request} request */
  async fetch(request) {
    if (new URL(request.url).pathname === "/ended") this.#ended.resolve(undefined);
    await this.#ended.promise;
    return new Response();
  }
}

export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const { searchParams } = new URL(request.url);
    const number = (/** @type {string} */ name) => Number(searchParams.get(name));
    const params = { nodes: number("nodes"), branches: number("branches"), hops: number("hops") };
    const startedAt = Date.now();
    const instance = await env.FLOW.create({ params });
    await env.WAITING.get(env.WAITING.idFromName(instance.id)).fetch("http://waiting/");
    return Response.json({ insideMs: Date.now() - startedAt });
  },
};
