// examples/gallery/research: a quorum, aborted calls, a deadline that keeps partial texts.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { example } from "../../examples/gallery/research/demo.mjs";
import { clientOf, storeDocuments, testScenarios } from "./gallery.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
  await storeDocuments(clientOf(curfew), example);
});
after(() => curfew.dispose());

testScenarios("research", example, () => clientOf(curfew), async ({ run, calls }, index) => {
  const slow: string[] = example.scenarios[index]?.services.slow;
  const questions = calls.filter(({ name }) => name === "POST /v1/chat/completions");
  // Five researchers and the editor, each once.
  assert.equal(questions.length, 6);
  assert.equal(new Set(questions.map(({ key }) => key)).size, 6, "every call has an idempotency key of its own");
  const aborted = questions.filter((call) => call.aborted).map(({ body }) => /field: (\w+)/.exec(body.messages[0].content)?.[1]);
  assert.deepEqual(aborted.sort(), [...slow].sort(), "the connections of the slow researchers were closed");
  assert.ok(questions.every(({ body }) => body.stream === true));
  const judged = calls.filter(({ name }) => name === "POST /judge");
  assert.deepEqual(judged.map(({ body }) => body.judge).sort(), ["kind", "strict", "young"]);
  assert.ok(judged.every(({ body }) => body.answer === run.output.report));
});
