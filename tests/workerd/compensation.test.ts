// Compensations and end handlers, against a real peer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId, workflow } from "./document-builders.ts";
import { root, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type Reply } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
const purchase = JSON.parse(readFileSync(join(root, "examples", "purchase.json"), "utf8"));
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
  await curfew.store(purchase);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** A shop whose services note their calls. `ship` answers a shipment. */
function shop(ship: () => Reply | Promise<Reply>) {
  const name = `/${freshId("shop")}`;
  const calls: [string, unknown][] = [];
  const service = (path: string, answer: () => Reply | Promise<Reply>) =>
    peer.route(`${name}/${path}`, async (request) => {
      calls.push([path, JSON.parse(request.body)]);
      return answer();
    });
  for (const [path, id] of [["charges", "ch-1"], ["refunds", "rf-1"], ["reservations", "rs-1"], ["releases", "rl-1"], ["reports", "rp-1"]]) {
    service(path as string, () => ({ body: { id } }));
  }
  service("shipments", ship);
  return { calls, input: { base_url: `${peer.url}${name}`, order_id: "o-1", amount: 12 } };
}

const undone = [
  ["releases", { reservation: "rs-1" }],
  ["refunds", { charge: "ch-1" }],
];

test("a purchase that works is not undone, and its end is reported", async () => {
  const { calls, input } = shop(() => ({ body: { id: "parcel-1" } }));
  const run = await curfew.ended(await curfew.start("purchase", input));
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output, { parcel: "parcel-1" });
  assert.deepEqual(calls.map(([path]) => path), ["charges", "reservations", "shipments", "reports"]);
  assert.deepEqual(calls.at(-1)?.[1], { order: "o-1", status: "completed" });
  assert.equal((run as any).compensation, undefined);
  assert.deepEqual((run as any).on_end, [{ status: "completed" }]);
});

test("a failed purchase is undone in reverse order, with the results of its nodes", async () => {
  const { calls, input } = shop(() => ({ status: 400, body: {} }));
  const id = await curfew.start("purchase", input);
  const run = await curfew.ended(id);
  assert.equal(run.status, "failed");
  assert.equal(run.error?.code, "http_400");
  assert.deepEqual(calls.slice(3), [...undone, ["reports", { order: "o-1", status: "failed" }]]);
  assert.deepEqual((run as any).compensation, {
    status: "completed",
    done: [{ node_id: "reserve", token_id: "t2" }, { node_id: "charge", token_id: "t1" }],
    failed: [],
  });
  const tokens = await curfew.tokens(id);
  assert.deepEqual(
    tokens.map((token: any) => [token.node_id, token.compensation ?? false, token.on_end ?? false, token.status]),
    [
      ["charge", false, false, "completed"],
      ["reserve", false, false, "completed"],
      ["ship", false, false, "failed"],
      ["reserve", true, false, "completed"],
      ["charge", true, false, "completed"],
      ["on_end", false, true, "completed"],
    ],
  );
  const kinds = (await curfew.events(id)).map((event) => event.kind);
  assert.deepEqual(kinds.filter((kind) => kind.startsWith("run_")), ["run_started", "run_compensating", "run_failed"]);
  assert.equal(kinds.at(-1), "run_failed");
  const retry = await curfew.api("POST", `/v1/runs/${id}/retry`, { mode: "retry_step" });
  assert.equal(retry.status, 409, retry.text);
  assert.equal(retry.json.error.code, "not_resumable");
});

test("a cancelled purchase is undone, and a second cancel changes nothing", async () => {
  const shipping = Promise.withResolvers<void>();
  const shipped = Promise.withResolvers<Reply>();
  const { calls, input } = shop(() => {
    shipping.resolve();
    return shipped.promise;
  });
  const id = await curfew.start("purchase", input);
  await shipping.promise;
  const cancelled = await curfew.api("POST", `/v1/runs/${id}/cancel`, { reason: "enough" });
  assert.equal(cancelled.status, 200, cancelled.text);
  const again = await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
  assert.equal(again.status, 200, again.text);
  // A parcel may be on its way: the run waits for the answer.
  shipped.resolve({ status: 409, body: {} });
  const run = await curfew.ended(id);
  assert.equal(run.status, "cancelled");
  assert.deepEqual(calls.slice(3), [...undone, ["reports", { order: "o-1", status: "cancelled" }]]);
});

test("a compensation that fails is recorded, and the others go on", async () => {
  const { calls, input } = shop(() => ({ status: 400, body: {} }));
  peer.route(`${new URL(input.base_url).pathname}/releases`, () => ({ status: 404, body: {} }));
  const run = await curfew.ended(await curfew.start("purchase", input));
  assert.equal(run.status, "failed");
  const compensation = (run as any).compensation;
  assert.equal(compensation.status, "partial");
  assert.deepEqual(compensation.done, [{ node_id: "charge", token_id: "t1" }]);
  assert.equal(compensation.failed[0].error.code, "http_404");
  assert.ok(calls.some(([path]) => path === "refunds"));
});

test("a call that was in flight when the run was cancelled is undone once it has answered", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Reply>();
  const name = `/${freshId("bank")}`;
  const refunds: unknown[] = [];
  peer.route(`${name}/charges`, async () => {
    asked.resolve();
    return answer.promise;
  });
  peer.route(`${name}/refunds`, (request) => {
    refunds.push(JSON.parse(request.body));
    return { body: {} };
  });
  const post = { kind: "http_request", implementation: { method: "POST", url: "${input.url}", body: "${input.body}" } };
  const document = workflow({
    nodes: [
      {
        id: "charge",
        action_id: "post",
        input_mapping: { url: `${peer.url}${name}/charges`, body: {} },
        compensate: { action_id: "post", input_mapping: { url: `${peer.url}${name}/refunds`, body: { id: "${result.body.id}" } } },
      },
    ],
    actions: [{ id: "post", ...post }],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await asked.promise;
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).json.status, "compensating");
  const pause = await curfew.api("POST", `/v1/runs/${id}/pause`, {});
  assert.deepEqual([pause.status, pause.json.error.code], [409, "run_ending"]);
  answer.resolve({ body: { id: "late" } });
  const run = await curfew.ended(id);
  assert.equal(run.status, "cancelled");
  assert.deepEqual(refunds, [{ id: "late" }]);
  assert.equal((await curfew.tokens(id))[0]?.status, "completed");
});

test("a child compensates before its parent goes on", async () => {
  const name = `/${freshId("trip")}`;
  const calls: string[] = [];
  const asked = Promise.withResolvers<void>();
  const never = Promise.withResolvers<Reply>();
  const note = (path: string) =>
    peer.route(`${name}/${path}`, () => {
      calls.push(path);
      return { body: {} };
    });
  for (const path of ["hotel", "flight", "cancel-hotel", "cancel-flight"]) note(path);
  peer.route(`${name}/insurance`, () => {
    asked.resolve();
    return never.promise;
  });
  const call = (path: string) => ({ action_id: "post", input_mapping: { url: `${peer.url}${name}/${path}` } });
  const actions = [{ id: "post", kind: "http_request", implementation: { method: "POST", url: "${input.url}" } }];
  const child = workflow({
    nodes: [{ id: "flight", ...call("flight"), compensate: call("cancel-flight") }, { id: "insurance", ...call("insurance") }],
    transitions: [{ from_node_id: "flight", to_node_id: "insurance" }],
    actions,
  });
  const parent = workflow({
    nodes: [{ id: "hotel", ...call("hotel"), compensate: call("cancel-hotel") }, { id: "rest", workflow_id: child.id }],
    transitions: [{ from_node_id: "hotel", to_node_id: "rest" }],
    actions,
  });
  const id = await curfew.storeAndStart([child, parent]);
  await asked.promise;
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).status, 200);
  const run = await curfew.ended(id);
  never.resolve({ body: {} });
  assert.equal(run.status, "cancelled");
  assert.deepEqual(calls, ["hotel", "flight", "cancel-flight", "cancel-hotel"]);
  assert.equal((await curfew.run(`${id}~t2`)).status, "cancelled");
});
