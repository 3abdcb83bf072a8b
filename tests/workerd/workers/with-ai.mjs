// @ts-check
// The executor with an AI binding that behaves like the platform's: it returns a stream or a value, throws an error with its number,
// or returns the raw response if requested. Models named `old-...` have no raw response.
import Entry, { Executor as CurfewExecutor } from "../../../src/worker/entry.mjs";

/** @param {string} url */
const ai = (url) => ({
  /** @param {string} model @param {{ stream?: boolean }} inputs @param {{ signal?: AbortSignal, returnRawResponse?: boolean }} options */
  async run(model, inputs, options) {
    const request = { method: "POST", body: JSON.stringify(inputs), signal: options.signal ?? null };
    const response = await fetch(`${url}/${model}`, request);
    if (options.returnRawResponse && !model.startsWith("old-")) return response;
    if (!response.ok) throw new Error(await response.text());
    return inputs.stream ? response.body : response.json();
  },
});

export * from "../../../src/worker/entry.mjs";

export class Executor extends CurfewExecutor {
  /** @param {ExecutionContext} context @param {any} env */
  constructor(context, env) {
    super(context, { ...env, AI: ai(env.MODELS) });
  }
}

/** The executor where it is a Worker of its own. */
export default class extends Entry {
  /** @param {ExecutionContext} context @param {any} env */
  constructor(context, env) {
    super(context, { ...env, AI: ai(env.MODELS) });
  }
}
