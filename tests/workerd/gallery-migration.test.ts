// examples/gallery/migration: Cloudflare Workflows and Curfew do the same, both in workerd, against the same services.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { example } from "../../examples/gallery/migration/demo.mjs";
import { clientOf, storeDocuments, testScenarios } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
  await storeDocuments(clientOf(curfew), example);
});
after(() => curfew.dispose());

// The scenarios compare outcome and calls of both engines.
testScenarios("migration", example, () => clientOf(curfew), ({ run, tokens, calls }) => {
  const accounts = calls.filter(({ name }) => name === "POST /accounts");
  assert.equal(new Set(accounts.map(({ key }) => key)).size, 1, "a call that is made again has the same key");
  assert.equal(new Set(calls.map(({ key }) => key)).size, new Set(calls.map(({ name }) => name)).size);
  const [created] = tokens;
  assert.equal(created.steps[0].attempts, accounts.length);
  const settled = tokens.find(({ node_id }) => node_id === "settle");
  assert.ok(settled.ended_at - settled.created_at >= 1_000);
  assert.equal(run.error, null);
});
