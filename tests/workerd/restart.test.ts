// The process goes away and comes back on the same disk: what was committed is there, and deadlines still fire.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId, oneRequest, oneTask, set } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
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

/** One life of the process. */
async function during<T>(work: (curfew: Curfew) => Promise<T>): Promise<T> {
  const curfew = await startCurfew({ persistTo: directory });
  try {
    return await work(curfew);
  } finally {
    await curfew.dispose();
  }
}

test("an ended run, a live one and its deadline survive", async () => {
  const [done, live] = await during(async (curfew): Promise<[string, string]> => {
    const done = await curfew.runToEnd(oneTask([set({ a: 1 })]));
    const hanging = oneRequest("${input.url}", { workflow: { timeout: "4s", on_timeout: "fail" } });
    await curfew.store(hanging);
    const path = `/hang/${freshId("restart")}`;
    const live = await curfew.start(hanging.id, { url: peer.url + path });
    await until("the request at the peer", () => peer.seen(path).length > 0);
    return [done.id, live];
  });
  await during(async (curfew) => {
    const { json: before } = await curfew.api("GET", `/v1/runs/${done}`);
    assert.deepEqual(before.output, { a: 1 });
    const ended = await curfew.ended(live);
    assert.equal(ended.status, "failed");
    assert.equal(ended.error?.message, "Workflow execution timed out after 4s");
  });
});
