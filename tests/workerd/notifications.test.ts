// Notifications: posted by the executor, signed, in order, again and again until the target has them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { startProcess } from "../crash/process.ts";
import type { NotificationView } from "./api-types.ts";
import { freshId, oneTask, set, workflow } from "./document-builders.ts";
import { ADMIN, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type RecordedRequest } from "./peer.ts";
import { until } from "./poll.ts";

const KEY = `whsec_${Buffer.from("a key of 32 bytes for the tests!").toString("base64")}`;
const PLAIN_KEY = "a plain key of the tests, not base64";
const TOKEN = "token-9f8e7d6c5b4a";
const executorVars = { CURFEW_SECRETS: "KEY, PLAIN_KEY, TOKEN", KEY, PLAIN_KEY, TOKEN };
/** Short delays between attempts. */
const vars = { CURFEW_NOTIFY_RETRY_MS: "100" };

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars, executorVars }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const ENDS = ["run_completed", "run_failed", "run_timed_out", "run_cancelled"];

/** A workflow with a gate that tells its targets about the gate and its end. */
const asking = (notify: Record<string, unknown>[]) =>
  workflow({ nodes: [{ id: "ask", gate: { prompt: "Pay 90 EUR?", timeout: "1h" } }], notify });

/** A workflow that ends at once. */
const ending = (notify: Record<string, unknown>[]) => oneTask([set({ a: 1 })], { workflow: { notify } });

type Api = Pick<Curfew, "api">;

async function notifications({ api }: Api, runId: string): Promise<NotificationView[]> {
  const { status, json, text } = await api("GET", `/v1/runs/${runId}/notifications`);
  assert.equal(status, 200, text);
  assert.equal(json.next_cursor, null);
  return json.items;
}

/** Waits until none is pending. */
const settled = (of: Api, runId: string, count: number, deadlineMs = 20_000) =>
  until(
    `${count} notifications of ${runId}`,
    async () => {
      const items = await notifications(of, runId);
      return items.length >= count && items.every(({ status }) => status !== "pending") && items;
    },
    deadlineMs,
    50,
  );

const bodyOf = ({ body }: RecordedRequest): any => JSON.parse(body);
const idOf = ({ headers }: RecordedRequest): string => String(headers["webhook-id"]);
const verified = (webhook: Webhook, { body, headers }: RecordedRequest): any => webhook.verify(body, headers as Record<string, string>);

async function decide(of: Api, runId: string, choice = "approve"): Promise<void> {
  const response = await of.api("POST", `/v1/runs/${runId}/gates/g1`, { choice });
  assert.equal(response.status, 200, response.text);
}

test("a gate and the end are posted, signed and in their order", async () => {
  const path = `/ok/${freshId("hook")}`;
  const target = {
    on: ["gate_opened", "gate_decided", ...ENDS],
    url: `${peer.url}${path}?key=\${secret.TOKEN}`,
    headers: { Authorization: "Bearer ${secret.TOKEN}", "X-Env": "test" },
    secret: "${secret.KEY}",
  };
  const document = asking([target]);
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const [opened] = await until("the gate at the target", () => peer.seen(path).length > 0 && peer.seen(path));
  const gate = await until("the gate in the list", async () => {
    const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
    return json.items.find(({ run_id }: any) => run_id === id);
  });
  assert.deepEqual(bodyOf(opened!).gate, gate);
  await decide(curfew, id);
  const items = await settled(curfew, id, 3);
  const seen = peer.seen(path);
  assert.deepEqual(seen.map((one) => bodyOf(one).kind), ["gate_opened", "gate_decided", "run_completed"]);
  const events = await curfew.events(id);
  for (const one of seen) {
    const { run, gate, links, ...event } = verified(new Webhook(KEY), one);
    assert.deepEqual(event, events.find(({ seq }) => seq === event.seq));
    assert.deepEqual([run.id, run.workflow_id, run.version], [id, document.id, 1]);
    assert.equal(links.run, `http://localhost:8787/v1/runs/${id}`);
    assert.equal(links.decide, gate && `http://localhost:8787/v1/runs/${id}/gates/g1`);
    assert.deepEqual([one.method, one.headers["content-type"], one.headers["x-env"]], ["POST", "application/json", "test"]);
    assert.deepEqual([one.headers["authorization"], one.query["key"]], [`Bearer ${TOKEN}`, TOKEN]);
  }
  assert.deepEqual(seen.map((one) => bodyOf(one).run.status), ["waiting", "completed", "completed"]);
  assert.deepEqual(
    items.map(({ id, target, kind, status, attempts }) => ({ id, target, kind, status, attempts })),
    seen.map((one) => ({ id: idOf(one), target: `${peer.url}${path}`, kind: bodyOf(one).kind, status: "delivered", attempts: 1 })),
  );
  assert.ok(items.every(({ delivered_at, created_at }) => delivered_at! >= created_at));
  const text = (await curfew.visibleText(id)) + JSON.stringify(items);
  for (const secret of [TOKEN, KEY, KEY.slice(6)]) assert.ok(!text.includes(secret), `${secret} is visible`);
});

test("a secret without the prefix signs as it is, and without a secret nothing is signed", async () => {
  const [signed, unsigned] = [`/ok/${freshId("hook")}`, `/ok/${freshId("hook")}`];
  const run = await curfew.runToEnd(
    ending([
      { on: ENDS, url: peer.url + signed, secret: "${secret.PLAIN_KEY}" },
      { on: ENDS, url: peer.url + unsigned },
    ]),
  );
  await settled(curfew, run.id, 2);
  const [one] = peer.seen(signed);
  assert.equal(verified(new Webhook(PLAIN_KEY, { format: "raw" }), one!).run.status, "completed");
  assert.throws(() => verified(new Webhook(KEY), one!));
  const [other] = peer.seen(unsigned);
  assert.equal(other!.headers["webhook-signature"], undefined);
  assert.match(idOf(other!), /^ntf_[0-9a-f]{32}$/);
});

test("a target that is down gets everything in order under the same ids, and delays no other", async () => {
  const [down, up] = [`/${freshId("down")}`, `/ok/${freshId("up")}`];
  let isUp = false;
  peer.route(down, () => (isUp ? { status: 204 } : { status: 503, headers: { "retry-after": "0" } }));
  const on = ["gate_opened", "gate_decided", ...ENDS];
  const document = asking([{ on, url: peer.url + down }, { on, url: peer.url + up }]);
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("two attempts", () => peer.seen(down).length >= 2);
  await decide(curfew, id);
  await curfew.ended(id);
  await until("the other target", () => peer.seen(up).length === 3);
  assert.equal(new Set(peer.seen(down).map(idOf)).size, 1, "only the first one is tried");
  const [first] = await notifications(curfew, id);
  assert.deepEqual([first?.status, first?.last_error], ["pending", "the target answered with status 503"]);
  assert.ok(first!.attempts >= 2 && first!.next_attempt_at! > first!.created_at);
  isUp = true;
  const items = await settled(curfew, id, 6);
  assert.ok(items.every(({ status }) => status === "delivered"));
  const ids = [...new Set(peer.seen(down).map(idOf))];
  assert.deepEqual(ids, items.filter(({ target }) => target.endsWith(down)).map(({ id }) => id));
  assert.deepEqual(peer.seen(down).slice(-3).map((one) => bodyOf(one).kind), ["gate_opened", "gate_decided", "run_completed"]);
});

test("nothing is lost when workerd is killed twice while the target is down", async () => {
  const path = `/${freshId("down")}`;
  let isUp = false;
  peer.route(path, () => (isUp ? { status: 200 } : { status: 500 }));
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  const on = ["gate_opened", "gate_decided", ...ENDS];
  const document = asking([{ on, url: peer.url + path, secret: "${secret.KEY}" }]);
  const ids = [1, 2, 3].map(() => freshId("killed"));
  let process = await startProcess(directory, vars, executorVars);
  const client: Api = {
    api: async (method, path, body) => {
      const reply = await fetch(process.url + path, {
        method,
        ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, headers: reply.headers, text, json: JSON.parse(text) };
    },
  };
  try {
    await client.api("PUT", `/v1/workflows/${document.id}`, document);
    for (const id of ids) {
      const started = await client.api("POST", `/v1/workflows/${document.id}/runs`, { run_id: id, input: {} });
      assert.equal(started.status, 201, started.text);
    }
    await until("attempts of all runs", () => new Set(peer.seen(path).map(idOf)).size === 3);
    const [firstKill, before] = [process.kill(), new Set(peer.seen(path).map(idOf))];
    await firstKill;
    process = await startProcess(directory, vars, executorVars);
    for (const id of ids) await decide(client, id);
    const seen = peer.seen(path).length;
    await until("attempts after the first kill", () => peer.seen(path).length > seen + 3);
    await process.kill();
    isUp = true;
    process = await startProcess(directory, vars, executorVars);
    // No request wakes the runs, which have ended: their alarms do.
    await until("everything", () => new Set(peer.seen(path).map(idOf)).size === 9, 60_000);
    for (const id of ids) {
      const items = await settled(client, id, 3, 40_000);
      assert.deepEqual(items.map(({ kind, status }) => [kind, status]), [
        ["gate_opened", "delivered"],
        ["gate_decided", "delivered"],
        ["run_completed", "delivered"],
      ]);
      const received = peer.seen(path).filter((one) => bodyOf(one).run.id === id);
      assert.deepEqual([...new Set(received.map(idOf))], items.map(({ id }) => id), "in order, under the same ids");
      assert.ok(before.has(items[0]!.id));
      for (const one of received) verified(new Webhook(KEY), one);
    }
  } finally {
    await process.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

test("a target that answers 410 gets nothing more", async () => {
  const path = `/${freshId("gone")}`;
  peer.route(path, () => ({ status: 410 }));
  const document = asking([{ on: ["gate_opened", "gate_decided", ...ENDS], url: peer.url + path }]);
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const [refused] = await settled(curfew, id, 1);
  assert.deepEqual([refused?.status, refused?.attempts], ["refused", 1]);
  assert.match(refused!.last_error!, /410/);
  await decide(curfew, id);
  await curfew.ended(id);
  assert.equal((await notifications(curfew, id)).length, 1);
  assert.equal(peer.seen(path).length, 1);
});

test("given up after the time for retries", async () => {
  const path = `/${freshId("broken")}`;
  peer.route(path, () => ({ status: 500 }));
  const short = await startCurfew({ vars: { ...vars, CURFEW_NOTIFY_GIVE_UP_MS: "600" } });
  try {
    const run = await short.runToEnd(ending([{ on: ENDS, url: peer.url + path }]));
    const [item] = await settled(short, run.id, 1);
    assert.deepEqual([item?.status, item?.last_error], ["failed", "the target answered with status 500"]);
    assert.ok(item!.attempts >= 2 && item!.ended_at! >= item!.created_at + 600);
    assert.equal(item!.next_attempt_at, undefined);
    assert.ok(short.logLines("notification_failed").length >= 2);
  } finally {
    await short.dispose();
  }
});

test("private addresses, redirects and secrets of other hosts", async () => {
  const [path, elsewhere] = [`/ok/${freshId("private")}`, `/${freshId("moved")}`];
  peer.route(elsewhere, () => ({ status: 307, headers: { location: peer.url + path } }));
  const strict = await startCurfew({
    vars,
    executorVars: { CURFEW_SECRETS: { TOKEN: ["api.example.com"] } as any, TOKEN, CURFEW_ALLOW_PRIVATE: "off" },
  });
  const bound = await startCurfew({ vars, executorVars: { CURFEW_SECRETS: { TOKEN: ["api.example.com"] } as any, TOKEN } });
  try {
    const refused = await strict.runToEnd(ending([{ on: ENDS, url: peer.url + path }]));
    const [item] = await settled(strict, refused.id, 1);
    assert.deepEqual([item?.status, item?.attempts], ["refused", 1]);
    assert.match(item!.last_error!, /loopback address.*CURFEW_ALLOW_PRIVATE/);
    const run = await bound.runToEnd(
      ending([
        { on: ENDS, url: peer.url + path, headers: { authorization: "Bearer ${secret.TOKEN}" } },
        { on: ENDS, url: peer.url + elsewhere },
      ]),
    );
    const items = await until("both attempts", async () => {
      const items = await notifications(bound, run.id);
      return items.every(({ last_error }) => last_error) && items;
    });
    assert.deepEqual(items.map(({ status }) => status), ["pending", "pending"]);
    assert.match(items[0]!.last_error!, /may not be sent to "127\.0\.0\.1:\d+"/);
    assert.match(items[1]!.last_error!, /a redirect is not followed/);
    assert.equal(peer.seen(path).length, 0);
  } finally {
    await Promise.all([strict.dispose(), bound.dispose()]);
  }
});

test("CURFEW_NOTIFY notifies of all workflows that it names, and its address stays hidden", async () => {
  const path = `/ok/${freshId("all")}`;
  const all = await startCurfew({
    vars: { ...vars, ...roleVars, CURFEW_NOTIFY: JSON.stringify([{ on: ENDS, url: peer.url + path, workflows: ["w-*"], secret: "${secret.KEY}" }]) },
    executorVars,
  });
  try {
    const [named, other] = [ending([]), { ...ending([]), id: freshId("other") }].map(({ notify, ...document }) => document as any);
    const runs: string[] = [];
    for (const document of [named, other]) {
      assert.equal((await all.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN)).status, 201);
      const started = await all.api("POST", `/v1/workflows/${document.id}/runs?wait_ms=20000`, { input: {} }, ADMIN);
      assert.equal(started.json.status, "completed", started.text);
      runs.push(started.json.id);
    }
    const [first] = await until("the notification", () => peer.seen(path).length > 0 && peer.seen(path));
    assert.deepEqual(verified(new Webhook(KEY), first!).run.id, runs[0]);
    const list = (run: string | undefined, token?: string) => all.api("GET", `/v1/runs/${run}/notifications`, undefined, token);
    const delivered = await until("its row", async () => (await list(runs[0], READ)).json.items.find((item: any) => item.status === "delivered"));
    assert.equal(delivered.target, peer.url, "only the origin");
    assert.deepEqual((await list(runs[1], READ)).json, { items: [], next_cursor: null });
    assert.equal((await list(runs[0])).status, 401);
    assert.equal((await list("nobody", READ)).status, 404);
    assert.equal(peer.seen(path).length, 1);
  } finally {
    await all.dispose();
  }
});

test("an invalid CURFEW_NOTIFY stops no run and says what is wrong", async () => {
  const path = `/ok/${freshId("own")}`;
  const invalid = await startCurfew({ vars: { ...vars, CURFEW_NOTIFY: JSON.stringify([{ on: ["run_ended"], url: `${peer.url}/never` }]) } });
  try {
    const run = await invalid.runToEnd(ending([{ on: ENDS, url: peer.url + path }]));
    await settled(invalid, run.id, 1);
    const { json } = await invalid.api("GET", `/v1/runs/${run.id}/notifications`);
    assert.match(json.problem, /^CURFEW_NOTIFY is invalid: at \/0\/on\/0: "run_ended" is no kind of event/);
    assert.equal(invalid.logLines("invalid_setting").length, 1);
  } finally {
    await invalid.dispose();
  }
});

test("without an executor notifications wait, and the run does not", async () => {
  const alone = await startCurfew({ vars, without: ["EXECUTOR"] });
  try {
    const run = await alone.runToEnd(ending([{ on: ENDS, url: `${peer.url}/ok` }]));
    assert.equal(run.status, "completed");
    const item = await until("an attempt", async () => (await notifications(alone, run.id)).find(({ attempts }) => attempts > 0));
    assert.equal(item.status, "pending");
    assert.match(item.last_error!, /no executor is bound/);
  } finally {
    await alone.dispose();
  }
});

test("wrong targets are refused at their place", async () => {
  const refused = await curfew.api("PUT", "/v1/workflows/x", {
    id: "x",
    nodes: [{ id: "a" }],
    notify: [{ on: ["gate_open"], url: "ftp://x.example", secret: "plain", headers: { host: "y" } }],
  });
  assert.equal(refused.status, 422);
  const pointers = refused.json.error.details.map(({ pointer, code }: any) => [pointer, code]);
  assert.deepEqual(pointers, [
    ["/notify/0/headers/host", "invalid_header"],
    ["/notify/0/on/0", "unknown_value"],
    ["/notify/0/secret", "invalid_secret"],
    ["/notify/0/url", "invalid_url"],
  ]);
  assert.ok(!refused.text.includes("plain\""), "a secret is not quoted");
});

test("a run without targets writes no row for them; a notification costs two", async () => {
  const rows = async (notify: Record<string, unknown>[] | undefined): Promise<number> => {
    const { id } = await curfew.runToEnd(oneTask([set({ a: 1 })], { task: { dispatch: "direct" }, workflow: notify ? { notify } : {} }));
    await settled(curfew, id, notify?.length ?? 0);
    const bill = (await curfew.api("GET", `/v1/runs/${id}`)).headers.get("x-curfew-bill") ?? "";
    return Number(/rows_written=(\d+)/.exec(bill)?.[1]);
  };
  const target = (name: string) => ({ on: ENDS, url: `${peer.url}/ok/${freshId(name)}` });
  const [none, one, two] = [await rows(undefined), await rows([target("one")]), await rows([target("one"), target("two")])];
  assert.equal(none, 9, "2 for the node and 7 besides");
  assert.deepEqual([one - none, two - none], [2, 4]);
});
