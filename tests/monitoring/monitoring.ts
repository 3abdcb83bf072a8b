// A real Prometheus scrapes a real Curfew: the rules hold, the metrics are well-formed, what Prometheus knows is what Curfew
// says, and every query of the dashboard can be executed.
//
//   CURFEW_PROMETHEUS=...            the directory of `prometheus` and `promtool`; empty: on the PATH
//   CURFEW_MONITORING_SECONDS=60     how long runs are made
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fan, freshId, oneRequest, oneTask, set, workflow } from "../workerd/document-builders.ts";
import { parseExposition } from "../workerd/exposition.ts";
import { ADMIN, READ, roleVars, root, startCurfew } from "../workerd/harness.ts";
import { startPeer } from "../workerd/peer.ts";
import { until } from "../workerd/poll.ts";

const SECONDS = Number(process.env["CURFEW_MONITORING_SECONDS"] ?? "60");
const binary = (name: string): string => join(process.env["CURFEW_PROMETHEUS"] ?? "", name);
const startedAt = Date.now();
const log = (text: string): void => console.log(`[monitoring] ${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${text}`);

const directory = mkdtempSync(join(tmpdir(), "curfew-monitoring-"));
cpSync(join(root, "examples/monitoring"), directory, { recursive: true });
writeFileSync(join(directory, "curfew-token"), READ);
const promtool = (args: string[], input?: string): string => {
  try {
    return execFileSync(binary("promtool"), args, { cwd: directory, encoding: "utf8", ...(input === undefined ? {} : { input }) });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`promtool ${args.join(" ")} failed:\n${stdout}${stderr}`);
  }
};
promtool(["check", "config", "prometheus.yml"]);
promtool(["check", "rules", "alerts.yml"]);
promtool(["test", "rules", "alerts.test.yml"]);
log("promtool: the configuration and the rules are valid, the tests of the rules pass");

const [curfew, peer] = await Promise.all([startCurfew({ vars: { ...roleVars, CURFEW_RETRY_DELAY_MS: "10" } }), startPeer()]);
const request = async (method: string, path: string, body?: unknown): Promise<any> => {
  const response = await curfew.api(method, path, body, ADMIN);
  assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${response.text}`);
  return response.json;
};
const scrape = async (): Promise<string> => (await curfew.api("GET", "/metrics", undefined, READ)).text;

// The example's configuration, with this Curfew as its target and a shorter interval.
const port = await freePort();
const configuration = readFileSync(join(directory, "prometheus.yml"), "utf8")
  .replaceAll(/interval: 30s/g, "interval: 1s")
  .replace("scheme: https", "scheme: http")
  .replace("curfew.example.workers.dev", new URL(curfew.url).host);
writeFileSync(join(directory, "prometheus.yml"), configuration);
promtool(["check", "config", "prometheus.yml"]);
const prometheus = spawn(
  binary("prometheus"),
  ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=127.0.0.1:${port}`, "--log.level=warn"],
  { cwd: directory, stdio: ["ignore", "inherit", "inherit"] },
);
const stopped = once(prometheus, "exit");
const ask = async (path: string, parameters: Record<string, string> = {}): Promise<any> => {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const answer = (await response.json()) as any;
  assert.equal(answer.status, "success", `${path} ${JSON.stringify(parameters)}: ${JSON.stringify(answer)}`);
  return answer.data;
};
const query = (expression: string): Promise<any> => ask("query", { query: expression });

try {
  await until("Prometheus to scrape Curfew", async () => {
    const targets = await ask("targets").catch(() => undefined);
    return targets?.activeTargets[0]?.health === "up";
  }, 30_000, 200);
  log(`Prometheus scrapes ${curfew.url} with a token`);
  const runs = await makeRuns();
  await fetch(`${curfew.url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*`);
  log(`${runs} runs were made`);

  const text = await settled();
  promtool(["check", "metrics"], text);
  const { samples } = parseExposition(text);
  const agreed = await agreement(samples);
  log(`Prometheus agrees with Curfew in ${agreed} series`);
  assert.equal([...samples].filter(([name]) => name.startsWith("workflow_executions_total")).reduce((all, [, count]) => all + count, 0), runs);

  const { groups } = await ask("rules");
  const rules: { name: string; health: string; lastError?: string }[] = groups.flatMap((group: any) => group.rules);
  assert.ok(rules.length >= 7 && rules.every(({ health }) => health === "ok"), JSON.stringify(rules));
  await dashboard();
} finally {
  prometheus.kill("SIGTERM");
  await stopped;
  await Promise.all([curfew.dispose(), peer.close()]);
  rmSync(directory, { recursive: true, force: true });
}
log("all is well");

/** Runs of several kinds until the time is over. Returns how many. */
async function makeRuns(): Promise<number> {
  const key = freshId("dep");
  const failing = oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url: `${peer.url}/status/500` }, execution: { breaker: key, retry_policy: { max_attempts: 2, initial_delay: "1ms" } } } }]);
  const flaky = oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url: `${peer.url}/flaky/\${input.key}/1/503` }, execution: { retry_policy: { max_attempts: 3, initial_delay: "5ms" } } } }]);
  const documents = [
    oneTask([set({ a: 1 })]),
    oneRequest(`${peer.url}/slow/150`),
    oneRequest(`${peer.url}/hang`, { workflow: { timeout: "300ms" } }),
    fan({}),
    flaky,
    failing,
  ];
  const parked = workflow({ nodes: [{ id: "ask", gate: { prompt: "?" } }] });
  for (const document of [...documents, parked]) await request("PUT", `/v1/workflows/${document.id}`, document);
  await request("POST", `/v1/workflows/${parked.id}/runs`, { input: {} });
  const until = Date.now() + SECONDS * 1000;
  let made = 0;
  for (; Date.now() < until; made += 1) {
    const input = { key: freshId("k"), urls: [`${peer.url}/ok?n=1`, `${peer.url}/ok?n=2`] };
    await request("POST", `/v1/workflows/${documents[made % documents.length]!.id}/runs?wait_ms=10000`, { input });
  }
  return made;
}

/** The metrics when the index has taken up everything. */
async function settled(): Promise<string> {
  let last = "";
  return until("the metrics to settle", async () => {
    const text = await scrape();
    const isSettled = text === last;
    last = text;
    return isSettled && text;
  }, 30_000, 2_000);
}

/** Waits until Prometheus has every sample as Curfew shows it. Returns their number. */
async function agreement(samples: Map<string, number>): Promise<number> {
  let wrong: string[] = [];
  const agree = async (): Promise<boolean> => {
    const { result } = await query('{job="curfew"}');
    const known = new Map<string, number>(result.map(({ metric, value }: any) => [series(metric), Number(value[1])]));
    wrong = [...samples].flatMap(([name, value]) => (known.get(ordered(name)) === value ? [] : [`${name} is ${known.get(ordered(name))}, should be ${value}`]));
    return wrong.length === 0;
  };
  await until("Prometheus to agree", agree, 20_000, 500).catch((error) => {
    throw new Error(`${error}\n${wrong.slice(0, 20).join("\n")}`);
  });
  return samples.size;
}

/** Executes every query of the dashboard. */
async function dashboard(): Promise<void> {
  const board = JSON.parse(readFileSync(join(root, "examples/monitoring/dashboard.json"), "utf8"));
  const targets: { title: string; expr: string }[] = board.panels.flatMap((panel: any) => (panel.targets ?? []).map(({ expr }: any) => ({ title: panel.title, expr })));
  assert.ok(targets.length >= 20, `${targets.length} queries`);
  const empty: string[] = [];
  for (const { title, expr } of targets) {
    const expression = expr.replaceAll("$__rate_interval", "30s").replaceAll("$workflow", ".*");
    const { result } = await query(expression);
    const values = result.filter(({ value }: any) => value[1] !== "NaN");
    if (values.length === 0) empty.push(title);
    const end = Math.floor(Date.now() / 1000);
    await ask("query_range", { query: expression, start: String(end - 60), end: String(end), step: "5" });
  }
  const labels = await ask("label/workflow/values");
  assert.ok(labels.length > 0);
  assert.deepEqual(empty, [], "queries of the dashboard without a value");
  log(`${targets.length} queries of the dashboard have values`);
}

/** A series of Prometheus without what it adds, with its labels in the order of their names. */
function series({ __name__: name, job, instance, ...labels }: Record<string, string>): string {
  const texts = Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
  return texts.length === 0 ? name! : `${name}{${texts.join(",")}}`;
}

/** A name of the text format in the same order. */
function ordered(name: string): string {
  const labels = [...name.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]): [string, string] => [label!, value!]);
  return series(Object.fromEntries([["__name__", name.split("{")[0]!], ...labels]));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
