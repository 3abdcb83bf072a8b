// examples/gallery/order: what was done is undone in reverse order, once.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { example } from "../../examples/gallery/order/demo.mjs";
import { clientOf, storeDocuments, testScenarios } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
  await storeDocuments(clientOf(curfew), example);
});
after(() => curfew.dispose());

testScenarios("order", example, () => clientOf(curfew), ({ run, tokens, calls }, index) => {
  const keys = calls.map(({ key }) => key);
  assert.ok(keys.every((key) => key !== undefined), "every call has an idempotency key");
  assert.equal(new Set(keys).size, keys.length, "every call has a key of its own");
  assert.ok(calls.every(({ repeated }) => !repeated), "nothing was done twice");
  const undone = tokens.filter(({ compensation }) => compensation).map(({ node_id, status }) => [node_id, status]);
  if (run.status === "completed") {
    assert.deepEqual(undone, []);
    assert.equal(run.compensation, undefined);
  } else {
    assert.deepEqual(undone, [["reserve", "completed"], ["charge", "completed"]]);
    assert.equal(run.compensation.status, "completed");
    assert.equal(run.error.code, index === 1 ? "http_409" : "gate_timeout");
  }
  assert.deepEqual(run.on_end, [{ status: "completed" }]);
});
