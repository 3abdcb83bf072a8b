import { choice, defineWorkflow } from "curfew/client";

// Greets at once, or asks a person first. Input: {"name": "Ada", "ask": false}.
export default defineWorkflow({
  id: "hello",
  timeout: "10m",
  on_timeout: "fail",
  input_schema: {
    type: "object",
    required: ["name"],
    properties: { name: { type: "string", minLength: 1 }, ask: { type: "boolean" } },
  },
  nodes: [
    { id: "begin" },
    { id: "ask", gate: { prompt: "Greet ${input.name}?", choices: ["greet", "stay-silent"], timeout: "5m", on_timeout: "fail" } },
    { id: "greet", output_mapping: { "output.greeting": "Hello, ${input.name}!" } },
    { id: "silence", output_mapping: { "output.greeting": null } },
  ],
  transitions: [
    { from_node_id: "begin", to_node_id: "ask", condition: "has(input.ask) && input.ask" },
    { from_node_id: "begin", to_node_id: "greet", priority: 1 },
    { from_node_id: "ask", to_node_id: "greet", condition: choice("ask", "greet") },
    { from_node_id: "ask", to_node_id: "silence", condition: choice("ask", "stay-silent") },
  ],
});
