// Runs whose traces go to a real OpenTelemetry collector, which prints what it has decoded. `npm run otlp` starts it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { fan, oneRequest } from "../workerd/document-builders.ts";
import { startCurfew } from "../workerd/harness.ts";
import { startPeer } from "../workerd/peer.ts";
import { until } from "../workerd/poll.ts";

interface Decoded {
  id: string;
  parent: string;
  trace: string;
  name: string;
  kind: string;
  status: string;
  run: string;
}

const [http, grpc] = await Promise.all([freePort(), freePort()]);
const collector = spawn(process.env["CURFEW_COLLECTOR"] ?? "", [
  "start", "--otlp-http-endpoint", `127.0.0.1:${http}`, "--otlp-grpc-endpoint", `127.0.0.1:${grpc}`,
  "--exporter", "blackhole", "--debug-log", "traces", "--debug-log-verbosity", "detailed",
]);
let printed = "";
collector.stdout.on("data", (chunk) => (printed += chunk));
collector.stderr.on("data", (chunk) => (printed += chunk));
const [peer, curfew] = await Promise.all([startPeer(), startCurfew({ vars: { CURFEW_OTLP_URL: `http://127.0.0.1:${http}`, CURFEW_OTLP_REPEAT_MS: "1000" } })]);
try {
  const child = oneRequest(`${peer.url}/ok`);
  await curfew.store(child);
  const run = await curfew.runToEnd(fan({ spawn: { spawn_count: 2 }, work: { workflow_id: child.id } }));
  assert.equal(run.status, "completed");
  const failed = await curfew.runToEnd(oneRequest(`${peer.url}/status/404`));
  assert.equal(failed.status, "failed");
  // Root, start, two branches with their joins, the node behind the join; for each child a root, a token, an attempt and a step.
  const runs = await until("all spans at the collector", () => {
    const spans = decoded(printed);
    const runs = [run.id, `${run.id}~t2`, `${run.id}~t3`, failed.id].map((id) => spans.filter((span) => span.run === id));
    return runs.map((spans) => spans.length).join() === "7,4,4,4" && runs;
  });
  const tree = runs.slice(0, 3).flat();
  assert.equal(new Set(tree.map(({ trace }) => trace)).size, 1, "one trace");
  const ids = new Set(tree.map(({ id }) => id));
  assert.equal(tree.filter(({ parent }) => !ids.has(parent)).length, 1, "one root");
  for (const request of peer.seen("/ok")) {
    const [, trace, span] = String(request.headers["traceparent"]).split("-");
    const step = tree.find(({ id }) => id === span);
    assert.deepEqual([step?.trace, step?.kind], [trace, "SPAN_KIND_CLIENT"]);
  }
  assert.ok(runs[3]!.every(({ status }) => status === "STATUS_CODE_ERROR"));
  console.log(`the collector has ${runs.flat().length} spans of ${runs.length} runs`);
} finally {
  await Promise.all([curfew.dispose(), peer.close()]);
  collector.kill();
}

/** The spans in what the collector has printed. */
function decoded(text: string): Decoded[] {
  const field = (span: string, pattern: RegExp) => pattern.exec(span)?.[1]?.trim() ?? "";
  return text.split(/^Span #\d+$/m).slice(1).map((span) => ({
    id: field(span, /^ +ID +: (.*)$/m),
    parent: field(span, /^ +Parent ID +: (.*)$/m),
    trace: field(span, /^ +Trace ID +: (.*)$/m),
    name: field(span, /^ +Name +: (.*)$/m),
    kind: field(span, /^ +Kind +: (.*)$/m),
    status: field(span, /^ +Status code +: (.*)$/m),
    run: field(span, /curfew\.run\.id: Str\((.*)\)$/m),
  }));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
