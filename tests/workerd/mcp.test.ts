// mcp_tool with real servers of the SDK, and with scripted servers for failures.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { oneTask, singleAttempt } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { toolResult, event, startScriptedServer, startSdkServer, type Script, type SdkServer } from "./mcp-servers.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

const SECRET = "tok-0123456789";

let curfew: Curfew;
let server: SdkServer;
let stateless: SdkServer;
before(async () => {
  const executorVars = { CURFEW_SECRETS: "TOKEN", TOKEN: SECRET };
  [curfew, server, stateless] = await Promise.all([
    startCurfew({ executorVars }),
    startSdkServer({ sessions: true }),
    startSdkServer({ sessions: false }),
  ]);
});
after(() => Promise.all([curfew.dispose(), server.close(), stateless.close()]));

const toolWorkflow = (implementation: object, more: Parameters<typeof oneTask>[1] = {}) =>
  oneTask([{ ref: "call", action: { kind: "mcp_tool", implementation, execution: singleAttempt } }], more);

/** Calls a tool of a server once. */
const callTool = (url: string, tool: string, input: object, more: object = {}): Promise<RunView> =>
  curfew.runToEnd(toolWorkflow({ server_url: url, tool, ...more }), input);

/** Calls a tool of a scripted server and closes the server. */
async function callScripted(script: Script, look: (run: RunView, server: Awaited<ReturnType<typeof startScriptedServer>>) => Promise<void> | void, initializeHeaders?: Record<string, string>): Promise<void> {
  const scripted = await startScriptedServer(script, initializeHeaders);
  try {
    await look(await callTool(scripted.url, "any", {}), scripted);
  } finally {
    await scripted.close();
  }
}

test("a tool of a real server is called in a session, which is deleted afterwards", async () => {
  const from = server.recorded.length;
  const run = await callTool(server.url, "add", { a: 2, b: 40 }, { headers: { authorization: "Bearer ${secret.TOKEN}" } });
  assertCompleted(run);
  assert.deepEqual(run.output, { content: [{ type: "text", text: "42" }], structured: null, text: "42", is_error: false });
  await until("the end of the session", () => server.recorded.slice(from).some(({ method }) => method === "DELETE"));
  const recorded = server.recorded.slice(from);
  assert.deepEqual(
    recorded.map(({ method, message }) => [method, message?.method]),
    [["POST", "initialize"], ["POST", "notifications/initialized"], ["POST", "tools/call"], ["DELETE", undefined]],
  );
  const [first, ...rest] = recorded;
  assert.equal(first?.headers["mcp-session-id"], undefined);
  const ids = new Set(rest.map(({ headers }) => headers["mcp-session-id"]));
  assert.ok(ids.size === 1 && !ids.has(undefined), "all in one session");
  for (const { headers } of rest) assert.equal(headers["mcp-protocol-version"], "2025-06-18");
  for (const { headers } of recorded) assert.equal(headers.authorization, `Bearer ${SECRET}`);
  assert.deepEqual(recorded.map(({ headers }) => headers["idempotency-key"] !== undefined), [false, false, true, false]);
  await until("the session to be deleted", () => server.sessions().length === 0);
});

test("arguments are those of the implementation, or the step's input", async () => {
  const given = await callTool(server.url, "add", { n: 5 }, { arguments: { a: "${input.n}", b: 1 } });
  assert.equal(given.output?.text, "6", JSON.stringify(given.error));
  const wrong = await callTool(server.url, "add", { a: "two", b: 1 });
  assert.equal(wrong.status, "failed");
  assert.match(wrong.error?.message ?? "", /expected number/i);
});

test("a server without sessions works as well", async () => {
  const from = stateless.recorded.length;
  const run = await callTool(stateless.url, "add", { a: 1, b: 2 });
  assertCompleted(run);
  assert.equal(run.output.text, "3");
  for (const { headers, method } of stateless.recorded.slice(from)) {
    assert.equal(headers["mcp-session-id"], undefined);
    assert.equal(method, "POST", "there is nothing to end");
  }
});

test("structured output is returned as it is", async () => {
  const run = await callTool(server.url, "measure", { text: "three short words" });
  assertCompleted(run);
  assert.deepEqual(run.output.structured, { length: 17, words: ["three", "short", "words"] });
});

test("a failing tool fails its step permanently, without secrets in the error", async () => {
  const run = await callTool(server.url, "fail", {}, { arguments: { why: "${secret.TOKEN} is worn out" } });
  assert.deepEqual([run.status, run.error?.code, run.error?.class], ["failed", "tool_error", "permanent"]);
  assert.equal(run.error?.message, 'the tool "fail" failed: it did not work: [redacted] is worn out');
});

test("a slow tool is awaited", async () => {
  const run = await callTool(server.url, "slow", { steps: 5, every_ms: 40 });
  assert.equal(run.output?.text, "all done", JSON.stringify(run.error));
});

test("at the deadline the call is cancelled, the connection closes, and progress messages are kept", async () => {
  const from = server.recorded.length;
  const document = toolWorkflow({ server_url: server.url, tool: "slow" }, { node: { timeout: "900ms" } });
  const run = await curfew.runToEnd(document, { steps: 100, every_ms: 100 });
  assert.deepEqual([run.status, run.error?.class], ["failed", "timeout"]);
  const recorded = () => server.recorded.slice(from);
  const notice = await until("the notice", () => recorded().find(({ message }) => message?.method === "notifications/cancelled"));
  const called = recorded().find(({ message }) => message?.method === "tools/call");
  assert.equal(notice.message?.params.requestId, called?.message?.id);
  assert.equal(notice.headers["mcp-session-id"], called?.headers["mcp-session-id"]);
  await until("the tool to be aborted", () => server.aborted.length > 0);
  await until("the connection to close", () => called?.closedAt);
  const [token] = await curfew.tokens(run.id);
  const late = notice.at - (token?.timeout_at ?? NaN);
  assert.ok(late > -50 && late < 3_000, `the notice came ${late} ms after the deadline`);
  const { json } = await curfew.api("GET", `/v1/runs/${run.id}/timeouts`);
  const record = (await curfew.api("GET", json.items[0].recovery_path)).json;
  const [artifact] = record.partial_artifacts;
  assert.deepEqual([artifact?.name, artifact?.complete], ["call", false]);
  assert.match(artifact.text, /^step 1 done\nstep 2 done\n/);
  await until("the end of the session", () => recorded().some(({ method }) => method === "DELETE"));
});

test("the deadline of the run stops a tool, too", async () => {
  const document = toolWorkflow({ server_url: server.url, tool: "slow" }, { workflow: { timeout: "900ms", on_timeout: "cancel_all" } });
  const from = server.recorded.length;
  const run = await curfew.runToEnd(document, { steps: 100, every_ms: 100 });
  assert.equal(run.status, "timed_out");
  const recorded = () => server.recorded.slice(from);
  const called = await until("the connection to close", () => recorded().find(({ message, closedAt }) => message?.method === "tools/call" && closedAt !== undefined));
  const late = (called.closedAt ?? NaN) - (run.timeout_at ?? NaN);
  assert.ok(late > -50 && late < 3_000, `the connection was closed ${late} ms after the deadline`);
});

test("a lost session is initialized again, once", async () => {
  let calls = 0;
  await callScripted(
    (message, writer) => {
      if (message.method !== "tools/call") return;
      calls += 1;
      if (calls === 1) writer.json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }, 404);
      else writer.json(toolResult(message.id, "second session"));
    },
    (run, { recorded }) => {
      assert.equal(run.output?.text, "second session", JSON.stringify(run.error));
      assert.equal(recorded.filter(({ message }) => message?.method === "initialize").length, 2);
      const ids = recorded.flatMap(({ message }) => (message?.id === undefined ? [] : [message.id]));
      assert.equal(new Set(ids).size, ids.length, "no id is used twice");
    },
    { "mcp-session-id": "s-1" },
  );
  await callScripted(
    (message, writer) => {
      if (message.method === "tools/call") writer.json({}, 404);
    },
    (run, { recorded }) => {
      assert.deepEqual([run.error?.class, run.error?.code], ["not_found", "http_404"]);
      assert.equal(recorded.filter(({ message }) => message?.method === "tools/call").length, 2);
    },
    { "mcp-session-id": "s-1" },
  );
});

test("a restarted server is initialized again", async () => {
  const restarted = await startSdkServer({ sessions: true });
  try {
    restarted.restartBefore("tools/call");
    const run = await callTool(restarted.url, "add", { a: 1, b: 1 });
    assert.equal(run.output?.text, "2", JSON.stringify(run.error));
    const methods = restarted.recorded.flatMap(({ message }) => message?.method ?? []);
    const round = ["initialize", "notifications/initialized", "tools/call"];
    assert.deepEqual(methods, [...round, ...round]);
  } finally {
    await restarted.close();
  }
});

test("responses may be plain JSON, one message or several", async () => {
  await callScripted(
    (message, writer) => {
      if (message.method === "tools/call") writer.json(toolResult(message.id, "plain"));
    },
    (run) => assert.equal(run.output?.text, "plain", JSON.stringify(run.error)),
  );
  await callScripted(
    (message, writer) => {
      const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } };
      if (message.method === "tools/call") writer.json([note, toolResult(message.id, "batch")]);
    },
    (run) => assert.equal(run.output?.text, "batch", JSON.stringify(run.error)),
  );
});

test("a stream may be split anywhere and contain other messages before the response", async () => {
  await callScripted(
    async (message, writer) => {
      if (message.method !== "tools/call") return;
      const notes = [
        ": hello\n\n",
        "id: 1\ndata:\n\n",
        event({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: message.id, progress: 1 } }),
        event(toolResult("another", "not this one")),
        event(toolResult(999, "nor this one")),
        event(toolResult(message.id, "größer ✓")).replaceAll("\n", "\r\n"),
      ];
      const bytes = Buffer.from(notes.join(""));
      writer.stream("");
      for (let at = 0; at < bytes.length; at += 7) {
        writer.response.write(bytes.subarray(at, at + 7));
        await new Promise((resolve) => setImmediate(resolve));
      }
      // The stream stays open: the response is enough.
    },
    async (run, { recorded }) => {
      assert.equal(run.output?.text, "größer ✓", JSON.stringify(run.error));
      await until("the stream to be closed", () => recorded.find(({ message }) => message?.method === "tools/call")?.closedAt);
    },
  );
});

test("a request of the server during a call is answered", async () => {
  let proceed = () => {};
  const replied = new Promise<void>((resolve) => (proceed = resolve));
  const replies: unknown[] = [];
  await callScripted(
    async (message, writer) => {
      if (message.method === undefined) {
        replies.push(message);
        if (replies.length === 2) proceed();
        return;
      }
      if (message.method !== "tools/call") return;
      writer.stream(event({ jsonrpc: "2.0", id: "p1", method: "ping" }));
      writer.stream(event({ jsonrpc: "2.0", id: "r1", method: "roots/list" }));
      await replied;
      writer.stream(event(toolResult(message.id, "after the ping")));
      writer.end();
    },
    (run) => {
      assert.equal(run.output?.text, "after the ping", JSON.stringify(run.error));
      assert.deepEqual(replies, [
        { jsonrpc: "2.0", id: "p1", result: {} },
        { jsonrpc: "2.0", id: "r1", error: { code: -32601, message: "method not found: roots/list" } },
      ]);
    },
  );
});

test("each failure has a class", async () => {
  const cases: [what: string, script: Script, wanted: [errorClass: string, code: string]][] = [
    ["a response to another request", (message, writer) => writer.json(toolResult((message.id as number) + 7, "x")), ["validation", "invalid_response"]],
    ["no JSON", (_, writer) => void writer.response.writeHead(200, { "content-type": "text/html" }).end("<html>"), ["validation", "invalid_response"]],
    ["a stream that ends early", (_, writer) => (writer.stream(": nothing\n\n"), writer.end()), ["network", "network"]],
    ["a connection that breaks", (_, writer) => void writer.response.destroy(), ["network", "network"]],
    ["unknown method", (message, writer) => writer.json({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no" } }), ["bad_request", "rpc_error"]],
    ["wrong arguments", (message, writer) => writer.json({ jsonrpc: "2.0", id: message.id, error: { code: -32602, message: "no" } }), ["validation", "rpc_error"]],
    ["internal", (message, writer) => writer.stream(event({ jsonrpc: "2.0", id: message.id, error: { code: -32603, message: "no" } })), ["unknown", "rpc_error"]],
    ["401", (_, writer) => writer.json({}, 401), ["auth", "http_401"]],
    ["404 without a session", (_, writer) => writer.json({}, 404), ["not_found", "http_404"]],
    ["503", (_, writer) => writer.json({}, 503), ["server_error", "http_503"]],
    ["a redirect that drops the message", (_, writer) => void writer.response.writeHead(302, { location: "/other" }).end(), ["permanent", "invalid_redirect"]],
    ["a redirect to another origin", (_, writer) => void writer.response.writeHead(307, { location: "http://127.0.0.1:1/other" }).end(), ["permanent", "redirected"]],
    ["far too much", (message, writer) => writer.json(toolResult(message.id, "x".repeat(600_000))), ["validation", "response_too_large"]],
    ["far too much in a stream", (message, writer) => writer.stream(event(toolResult(message.id, "x".repeat(1_100_000)))), ["validation", "response_too_large"]],
  ];
  await Promise.all(
    cases.map(([what, script, wanted]) =>
      callScripted(
        (message, writer, recorded) => {
          if (message.method === "tools/call") return script(message, writer, recorded);
        },
        (run) => assert.deepEqual([run.error?.class, run.error?.code], wanted, `${what}: ${JSON.stringify(run.error)}`),
      ),
    ),
  );
});

test("a server with an unsupported protocol version is refused", async () => {
  const greeting = (protocolVersion: string): Script => (message, writer) => {
    if (message.method === "initialize") writer.json({ jsonrpc: "2.0", id: message.id, result: { protocolVersion, capabilities: {} } });
    if (message.method === "tools/call") writer.json(toolResult(message.id, "hello"));
  };
  await callScripted(greeting("2099-01-01"), (run, { recorded }) => {
    assert.deepEqual([run.error?.class, run.error?.code], ["permanent", "unsupported_protocol"]);
    assert.equal(recorded.length, 1);
  });
  for (const version of ["2025-03-26", "2025-11-25"]) {
    await callScripted(greeting(version), (run, { recorded }) => {
      assert.equal(run.output?.text, "hello", JSON.stringify(run.error));
      assert.equal(recorded.at(-1)?.headers["mcp-protocol-version"], version);
    });
  }
});

test("private addresses are refused, as for http_request", async () => {
  const strict = await startCurfew({ executorVars: { CURFEW_ALLOW_PRIVATE: "" } });
  try {
    const from = server.recorded.length;
    const run = await strict.runToEnd(toolWorkflow({ server_url: server.url, tool: "add" }), { a: 1, b: 1 });
    assert.deepEqual([run.error?.class, run.error?.code], ["permanent", "private_address"]);
    assert.equal(server.recorded.length, from);
  } finally {
    await strict.dispose();
  }
});
