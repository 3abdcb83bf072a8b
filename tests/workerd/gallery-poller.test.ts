// examples/gallery/poller: one run for each night, pauses that grow, a way out of the loop.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { example } from "../../examples/gallery/poller/demo.mjs";
import { clientOf, storeDocuments, testScenarios } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
  await storeDocuments(clientOf(curfew), example);
});
after(() => curfew.dispose());

testScenarios("poller", example, () => clientOf(curfew), ({ run, calls }, index) => {
  assert.equal(run.triggered_by.event, "night.began");
  const keys = calls.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, "every question has a key of its own");
  assert.deepEqual(calls[0]?.body, { day: "2026-11-01" });
  const last = index === 0 ? { day: "2026-11-01", job: "export-2026-11-01" } : { text: "the export of 2026-11-01 is late" };
  assert.deepEqual(calls.at(-1)?.body, last);
});
