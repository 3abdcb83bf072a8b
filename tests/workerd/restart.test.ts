// The process goes away and comes back on the same disk: what was committed is there, and deadlines still fire.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId, oneRequest, oneTask, set } from "./documents.ts";
import { startCurfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let peer: Peer;
const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
before(async () => {
  peer = await startPeer();
});
after(async () => {
  await peer.close();
  rmSync(directory, { recursive: true, force: true });
});

test("an ended run, a live one and its deadline survive", async () => {
  const first = await startCurfew({ persistTo: directory });
  const done = await first.runToEnd(oneTask([set({ a: 1 })]));
  const hanging = oneRequest("${input.url}", { workflow: { timeout: "4s", on_timeout: "fail" } });
  await first.store(hanging);
  const path = `/hang/${freshId("restart")}`;
  const live = await first.start(hanging.id, { url: peer.url + path });
  await until("the request at the peer", () => peer.seen(path).length > 0);
  await first.dispose();

  const second = await startCurfew({ persistTo: directory });
  try {
    const { json: before } = await second.api("GET", `/v1/runs/${done.id}`);
    assert.deepEqual(before.output, { a: 1 });
    const ended = await second.ended(live);
    assert.equal(ended.status, "failed");
    assert.equal(ended.error?.message, "Workflow execution timed out after 4s");
  } finally {
    await second.dispose();
  }
});
