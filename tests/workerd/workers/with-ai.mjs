// @ts-check
// The executor with an AI binding made of a fetch, as the platform's own one is: a stream if one was asked for, an error that
// is thrown with its number, or the response itself for whoever asks for that. Models called `old-...` know no raw response.
import Entry from "../../../src/worker/entry.mjs";

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

export default class extends Entry {
  /** @param {ExecutionContext} context @param {any} env */
  constructor(context, env) {
    super(context, { ...env, AI: ai(env.MODELS) });
  }
}
