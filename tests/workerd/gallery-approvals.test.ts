// examples/gallery/approvals: names come from tokens, and where there are none from the bodies of requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { example } from "../../examples/gallery/approvals/demo.mjs";
import { perform } from "../../examples/gallery/example.mjs";
import { clientOf, storeDocuments, testScenarios, tokensFor } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

const { tokens, CURFEW_TOKENS } = tokensFor(example.callers ?? {});
let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: { CURFEW_TOKENS } });
  await storeDocuments(clientOf(curfew, tokens), example);
});
after(() => curfew.dispose());

testScenarios("approvals", example, () => clientOf(curfew, tokens), ({ run, calls }) => {
  assert.ok(["ada", "till"].includes(run.started_by));
  assert.ok(calls.every(({ key, repeated }) => key !== undefined && !repeated));
});

test("approvals: in development the names of the requests count", async () => {
  const development = await startCurfew();
  try {
    const client = clientOf(development);
    await storeDocuments(client, example);
    for (const scenario of example.scenarios.filter(({ needsTokens }) => !needsTokens)) {
      const { seen } = await perform(example, scenario, client);
      assert.deepEqual(seen, scenario.expected);
    }
  } finally {
    await development.dispose();
  }
});
