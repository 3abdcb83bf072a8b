// A model for examples: a server that speaks OpenAI's chat completions, streamed, and whose answers a script gives. A real server takes
// its place by its base_url.
import { pause } from "./service.mjs";

/**
 * @typedef {object} Turn
 * @property {string} [text]
 * @property {{name: string, arguments: object}} [tool] the model asks for this tool
 * @property {number} [wordMs] between two words, 10 by default
 * @property {number} [thinkMs] before the first word
 */

/**
 * The route of `POST /v1/chat/completions`.
 * @param {(messages: any[], request: any) => Turn} script what the model says next, from the whole conversation
 * @returns {import("./service.mjs").Route}
 */
export const modelRoute = (script) => (request) => {
  const turn = script(request.messages, request);
  return { stream: (signal) => chunks(request, turn, signal) };
};

/**
 * @param {any} request
 * @param {Turn} turn
 * @param {AbortSignal} signal
 */
async function* chunks(request, { text = "", tool, wordMs = 10, thinkMs = 0 }, signal) {
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ finish_reason = null) =>
    JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: request.model, choices: [{ index: 0, delta, finish_reason }] });
  await pause(thinkMs, signal);
  const words = text.split(/(?<= )/).filter((word) => word !== "");
  for (const word of words) {
    if (signal.aborted) return;
    yield chunk({ content: word });
    await pause(wordMs, signal);
  }
  if (tool) {
    const id = `call_${request.messages.length}`;
    const written = JSON.stringify(tool.arguments);
    yield chunk({ tool_calls: [{ index: 0, id, type: "function", function: { name: tool.name, arguments: "" } }] });
    // Arguments come in pieces, as from a real model.
    yield chunk({ tool_calls: [{ index: 0, function: { arguments: written.slice(0, 10) } }] });
    yield chunk({ tool_calls: [{ index: 0, function: { arguments: written.slice(10) } }] });
  }
  yield chunk({}, tool ? "tool_calls" : "stop");
  yield JSON.stringify({ choices: [], usage: { prompt_tokens: 20 * request.messages.length, completion_tokens: words.length } });
  yield "[DONE]";
}
