// The shop's MCP server, made with the SDK, and a model that follows a script: it finds the orders, asks a person about the damage,
// wants to pay back, and says what became of it.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { modelRoute } from "../model.mjs";
import { startService } from "../service.mjs";

/**
 * @typedef {{tool: string, arguments: any}} ToolCall
 * @typedef {import("../service.mjs").Service & {toolCalls: ToolCall[]}} Support
 */

/** What the model says next, from the tool results it has. @param {any[]} messages @returns {import("../model.mjs").Turn} */
export function script(messages) {
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
  const [orders, damage, refund] = results;
  if (orders === undefined) return { text: "I look for the order. ", tool: { name: "find_orders", arguments: { customer: "grace" } } };
  if (damage === undefined) return { tool: { name: "ask_person", arguments: { question: "Is the lamp of order o-7 broken?" } } };
  if (refund === undefined) return { tool: { name: "refund_order", arguments: { order_id: "o-7", amount: 80 } } };
  return { text: `About your lamp: ${damage} ${refund}` };
}

/** @param {ToolCall[]} toolCalls */
function shopTools(toolCalls) {
  const server = new McpServer({ name: "shop", version: "1.0.0" });
  server.registerTool("find_orders", { description: "The orders of a customer.", inputSchema: { customer: z.string() } }, (args) => {
    toolCalls.push({ tool: "find_orders", arguments: args });
    return { content: [{ type: "text", text: JSON.stringify([{ id: "o-7", item: "lamp", amount: 80 }]) }] };
  });
  const refund = { order_id: z.string(), amount: z.number() };
  server.registerTool("refund_order", { description: "Pays an order back.", inputSchema: refund }, (args) => {
    toolCalls.push({ tool: "refund_order", arguments: args });
    return { content: [{ type: "text", text: `${args.amount} were paid back for ${args.order_id}.` }] };
  });
  return server;
}

/** @param {{thinkMs?: number}} [options] how long the model takes before each turn @returns {Promise<Support>} */
export async function startSupport({ thinkMs = 0 } = {}) {
  /** @type {ToolCall[]} */
  const toolCalls = [];
  const service = await startService(
    { "POST /v1/chat/completions": modelRoute((messages) => ({ ...script(messages), thinkMs })) },
    {
      // Without sessions each request has a server of its own, as the SDK recommends.
      "POST /mcp": async (request, response, body) => {
        const transport = new StreamableHTTPServerTransport({});
        response.on("close", () => void transport.close());
        // The types of the SDK disagree about optional fields.
        await shopTools(toolCalls).connect(/** @type {any} */ (transport));
        await transport.handleRequest(request, response, body);
      },
    },
  );
  return { ...service, toolCalls };
}
