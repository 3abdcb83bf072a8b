// llm_call with models on loopback that stream in all three dialects: slow, split inside characters, interrupted, hanging.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneTask, request, set } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type Reply, type RecordedRequest } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

const KEY = "sk-0123456789-abcdef";
type Json = Record<string, unknown>;

let curfew: Curfew;
/** Without an AI binding and without access to private addresses. */
let withoutBindings: Curfew;
let peer: Peer;
before(async () => {
  peer = await startPeer();
  const executorVars = { CURFEW_SECRETS: "LLM_KEY", LLM_KEY: KEY };
  [curfew, withoutBindings] = await Promise.all([
    startCurfew({ executorVars, models: peer.url }),
    startCurfew({ executorVars: { CURFEW_ALLOW_PRIVATE: "off" } }),
  ]);
});
after(() => Promise.all([curfew.dispose(), withoutBindings.dispose(), peer.close()]));

type Provider = "openai" | "anthropic" | "workers_ai";
const PROVIDERS: Provider[] = ["openai", "anthropic", "workers_ai"];

/** The events of a response with these texts, without its end. */
function eventsOf(provider: Provider, texts: string[]): string {
  const line = (chunk: Json, name?: unknown) => `${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(chunk)}\n\n`;
  switch (provider) {
    case "openai":
      return texts.map((content) => line({ model: "m-1", choices: [{ index: 0, delta: { content }, finish_reason: null }] })).join("");
    case "workers_ai":
      return texts.map((response) => line({ response })).join("");
    case "anthropic":
      return [
        { type: "message_start", message: { model: "m-1", content: [], usage: { input_tokens: 7, output_tokens: 1 } } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        ...texts.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
      ].map((event) => line(event, event.type)).join("");
  }
}

const ENDS: Record<Provider, string> = {
  openai: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\ndata: [DONE]\n\n`,
  anthropic: `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"stop"},"usage":{"output_tokens":3}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`,
  workers_ai: `data: {"response":"","usage":{"prompt_tokens":7,"completion_tokens":3}}\n\ndata: [DONE]\n\n`,
};

const PATHS: Record<Provider, string> = { openai: "/chat/completions", anthropic: "/v1/messages", workers_ai: "" };

/** Split into chunks of so many bytes, also inside characters. */
function streamed(text: string, then: "end" | "break" | "hang" = "end", size = 5): Reply {
  const bytes = Buffer.from(text);
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
  return { headers: { "content-type": "text/event-stream" }, stream: { chunks, everyMs: 1, then } };
}

/** A model for one test: its step, and its requests. */
function model(provider: Provider, reply: (seen: RecordedRequest, asked: number) => Reply, more: Json = {}, execution: Json = {}) {
  const name = freshId("m");
  const path = `/${name}${PATHS[provider]}`;
  peer.route(path, reply);
  const address = provider === "workers_ai" ? {} : { base_url: `${peer.url}/${name}`, api_key: "${secret.LLM_KEY}" };
  const implementation = { provider, model: name, prompt: "Say ${input.what}", ...address, ...more };
  return { path, step: { ref: "ask", action: { kind: "llm_call", implementation, execution } } };
}

const quick = { retry_policy: { max_attempts: 3, initial_delay_ms: 10 } };

async function runStep(step: Json, more: Parameters<typeof oneTask>[1] = {}): Promise<RunView> {
  return curfew.runToEnd(oneTask([step], more), { what: "grün" });
}

describe("language models", { concurrency: 6 }, () => {
  for (const provider of PROVIDERS) {
    test(`${provider}: text arrives slowly, split inside characters`, async () => {
      const texts = ["Grü", "ße aus ", "dem 🌲", "wald"];
      const { path, step } = model(provider, () => streamed(eventsOf(provider, texts) + ENDS[provider]), { system: "Be brief.", max_tokens: 50 });
      const run = await runStep(step);
      assert.equal(run.status, "completed", JSON.stringify(run.error));
      const reason = provider === "workers_ai" ? null : "stop";
      const name = provider === "workers_ai" ? path.slice(1) : "m-1";
      assert.deepEqual(run.output, {
        text: "Grüße aus dem 🌲wald",
        tool_calls: [],
        usage: { input_tokens: 7, output_tokens: 3 },
        finish_reason: reason,
        model: name,
      });
      const [seen] = peer.seen(path);
      const body = JSON.parse(seen?.body ?? "");
      assert.deepEqual([body.stream, body.max_tokens], [true, 50]);
      assert.deepEqual(body.messages.at(-1), { role: "user", content: "Say grün" });
      if (provider === "workers_ai") return;
      assert.equal(seen?.headers["idempotency-key"], `${run.id}:t1:ask`);
      const key = provider === "openai" ? seen?.headers["authorization"] : seen?.headers["x-api-key"];
      assert.equal(key, provider === "openai" ? `Bearer ${KEY}` : KEY);
      assert.ok(!(await curfew.visibleText(run.id)).includes(KEY));
    });

    test(`${provider}: at the deadline the partial text is kept and the connection closed`, async () => {
      const said = eventsOf(provider, ["So weit, ", `so gut: ${KEY} `, `und ${KEY.slice(0, 9)}`]);
      const { path, step } = model(provider, () => streamed(said, "hang", 50), { system: "${secret.LLM_KEY}" });
      const run = await runStep(step, { node: { timeout: "1500ms" } });
      assert.deepEqual([run.status, run.error?.class], ["failed", "timeout"], JSON.stringify(run.error));
      const [record, ...others] = await curfew.timeouts(run.id);
      assert.deepEqual([record?.timeout_event.scope, record?.timeout_event.timeout_ms, others.length], ["llm_call", 1_500, 0]);
      const text = "So weit, so gut: [redacted] und [redacted]";
      assert.deepEqual(record?.partial_artifacts, [{ name: "ask", complete: false, bytes: text.length, text }]);
      const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
      assert.equal(seen.aborted, true);
      assert.ok(!(await curfew.visibleText(run.id)).includes(KEY.slice(0, 8)));
    });

    test(`${provider}: a model that never responds is aborted, too`, async () => {
      const { path, step } = model(provider, () => streamed("", "hang"));
      const run = await runStep(step, { node: { timeout: "700ms" } });
      assert.equal(run.error?.class, "timeout");
      const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
      assert.equal(seen.aborted, true);
    });

    for (const then of ["break", "end"] as const) {
      test(`${provider}: a stream that ends early (${then}) is retried`, async () => {
        const half = eventsOf(provider, ["Hal", "b"]);
        const { path, step } = model(provider, (_seen, asked) => (asked < 3 ? streamed(half, then) : streamed(eventsOf(provider, ["Ganz"]) + ENDS[provider])), {}, quick);
        const run = await runStep(step);
        assert.equal(run.output?.text, "Ganz", JSON.stringify(run.error));
        assert.equal(peer.seen(path).length, 3);
        const [token] = await curfew.tokens(run.id);
        assert.deepEqual(token?.steps[0]?.retries?.map((retry) => [retry.class, retry.code]), [["network", "network"], ["network", "network"]]);
      });
    }

    test(`${provider}: a 429 waits for its Retry-After, a 529 for the default, a 401 is final`, async () => {
      const refusals: Reply[] = [{ status: 429, headers: { "retry-after": "1" }, body: { error: "slow" } }, { status: 529, body: {} }];
      const { step } = model(provider, (_seen, asked) => refusals[asked - 1] ?? streamed(eventsOf(provider, ["Na gut"]) + ENDS[provider]), {}, quick);
      const run = await runStep(step);
      assert.equal(run.output?.text, "Na gut", JSON.stringify(run.error));
      const [token] = await curfew.tokens(run.id);
      const retries = token?.steps[0]?.retries ?? [];
      assert.deepEqual(retries.map((retry) => [retry.class, retry.code]), [["rate_limited", "http_429"], ["provider_transient", "http_529"]]);
      assert.equal(retries[0]?.delay_ms, 1_000);
      const { path, step: locked } = model(provider, () => ({ status: 401, body: { error: { message: `bad key ${KEY}` } } }), { system: "${secret.LLM_KEY}" });
      const refused = await runStep(locked);
      assert.deepEqual([refused.error?.class, refused.error?.code, peer.seen(path).length], ["auth", "http_401", 1]);
      assert.match(refused.error?.message ?? "", /bad key \[redacted\]/);
    });

    test(`${provider}: a plain JSON response is accepted`, async () => {
      const bodies: Record<Provider, Json> = {
        openai: { choices: [{ message: { role: "assistant", content: "Ja" }, finish_reason: "stop" }] },
        anthropic: { type: "message", content: [{ type: "text", text: "Ja" }], stop_reason: "stop" },
        workers_ai: { response: "Ja" },
      };
      const { path, step } = model(provider, () => ({ body: bodies[provider] }));
      const run = await runStep(step);
      assert.equal(run.output?.text, "Ja", JSON.stringify(run.error));
      assert.equal(run.output?.model, path.split("/")[1]);
    });
  }

  test("tool calls are assembled, in both dialects", async () => {
    const part = (index: number, call: Json) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...call }] } }] })}\n\n`;
    const openai =
      part(0, { id: "c1", type: "function", function: { name: "weather", arguments: "" } }) +
      part(0, { function: { arguments: '{"city": "Kö' } }) +
      part(1, { id: "c2", type: "function", function: { name: "time", arguments: "" } }) +
      part(0, { function: { arguments: 'ln"}' } }) +
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n';
    const anthropic = [
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "c1", name: "weather", input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"city": "Kö' } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: 'ln"}' } },
      { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "c2", name: "time", input: {} } },
      { type: "message_delta", delta: { stop_reason: "tool_calls" } },
      { type: "message_stop" },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    const tools = [{ name: "weather", description: "of a city", parameters: { type: "object" } }, { name: "time" }];
    for (const [provider, text] of [["openai", openai], ["anthropic", anthropic]] as const) {
      const { path, step } = model(provider, () => streamed(text), { tools, tool_choice: "required" });
      const run = await runStep(step);
      assert.deepEqual(run.output?.tool_calls, [
        { id: "c1", name: "weather", arguments: { city: "Köln" } },
        { id: "c2", name: "time", arguments: {} },
      ], JSON.stringify(run.error));
      assert.equal(run.output?.finish_reason, "tool_calls");
      assert.equal(JSON.parse(peer.seen(path)[0]?.body ?? "").tools.length, 2);
    }
  });

  test("an error inside a stream has its class", async () => {
    const error = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
    const { step } = model(
      "anthropic",
      (_seen, asked) => streamed(eventsOf("anthropic", ["A"]) + (asked === 1 ? error : ENDS.anthropic)),
      {},
      quick,
    );
    const run = await runStep(step);
    assert.equal(run.output?.text, "A", JSON.stringify(run.error));
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual(token?.steps[0]?.retries?.map((retry) => [retry.class, retry.code]), [["provider_transient", "provider_error"]]);
  });

  test("JSON is parsed and checked against its schema", async () => {
    const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" } }, additionalProperties: false };
    const response_format = { type: "json_schema", schema };
    const saying = (provider: Provider, text: string) =>
      model(provider, () => (provider === "workers_ai" ? { body: { response: JSON.parse(text) } } : streamed(eventsOf(provider, [text]) + ENDS[provider])), { response_format });
    for (const provider of PROVIDERS) {
      const { path, step } = saying(provider, '{"n": 5}');
      const run = await runStep(step);
      assert.deepEqual(run.output?.json, { n: 5 }, JSON.stringify(run.error));
      assert.match(peer.seen(path)[0]?.body ?? "", /additionalProperties/);
      const unfit = await runStep(saying(provider, '{"n": "five"}').step);
      assert.deepEqual([unfit.error?.class, unfit.error?.code], ["validation", "schema_mismatch"]);
    }
    const chatty = await runStep(saying("openai", "Sure! Here you are.").step);
    assert.deepEqual([chatty.error?.class, chatty.error?.code], ["validation", "invalid_response"]);
  });

  test("models without raw responses return a stream, a value, or an error with its number", async () => {
    const old = (name: string, reply: () => Reply) => {
      const id = `old-${freshId(name)}`;
      peer.route(`/${id}`, reply);
      return { ref: "ask", action: { kind: "llm_call", implementation: { provider: "workers_ai", model: id, prompt: "Hi" }, execution: { retry_policy: { max_attempts: 1 } } } };
    };
    const text = await runStep(old("text", () => streamed(eventsOf("workers_ai", ["Grü", "ße"]) + ENDS.workers_ai)));
    assert.equal(text.output?.text, "Grüße", JSON.stringify(text.error));
    const json = old("json", () => ({ body: { response: { n: 1 } } }));
    (json.action.implementation as Json)["response_format"] = { type: "json_object" };
    assert.deepEqual((await runStep(json)).output?.json, { n: 1 });
    const full = await runStep(old("full", () => ({ status: 429, body: "3040: Capacity temporarily exceeded" })));
    assert.deepEqual([full.error?.class, full.error?.code], ["provider_transient", "provider_error"]);
  });

  test("redirects of a model are not followed", async () => {
    const away = `/away/${freshId("r")}`;
    const { path, step } = model("openai", () => ({ status: 307, headers: { location: peer.url + away }, body: {} }));
    const run = await runStep(step);
    assert.deepEqual([run.error?.class, run.error?.code], ["permanent", "redirected"]);
    assert.deepEqual([peer.seen(path).length, peer.seen(away).length], [1, 0]);
  });

  test("private addresses are refused, and a missing binding is named", async () => {
    const at = (more: Json) => oneTask([{ action: { kind: "llm_call", implementation: { model: "m", prompt: "Hi", ...more } } }]);
    const path = `/private/${freshId("p")}`;
    const refused = await withoutBindings.runToEnd(at({ provider: "openai", base_url: peer.url + path }));
    assert.deepEqual([refused.error?.class, refused.error?.code], ["permanent", "private_address"]);
    assert.equal(peer.seen(path).length, 0);
    const unbound = await withoutBindings.runToEnd(at({ provider: "workers_ai" }));
    assert.deepEqual([unbound.error?.class, unbound.error?.code], ["permanent", "no_binding"]);
    assert.match(unbound.error?.message ?? "", /"AI"/);
  });

  test("calls to models have their own timeout inside a longer task", async () => {
    const { step } = model("openai", () => streamed(eventsOf("openai", ["Moment"]), "hang", 50));
    const steps = [request({ url: `${peer.url}/slow/900` }), { ...step, on_failure: "continue" }, set({ errors: "${state._errors}" })];
    const run = await curfew.runToEnd(oneTask(steps, { workflow: { timeouts: { llm_call: "600ms" } } }), { what: "x" });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.deepEqual(run.output.errors.map((error: Json) => [error["ref"], error["class"]]), [["ask", "timeout"]]);
  });
});
