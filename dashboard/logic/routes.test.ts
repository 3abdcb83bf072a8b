import assert from "node:assert/strict";
import { test } from "node:test";
import { routeOf, runPath, tokenPath, withQuery, workflowPath } from "./routes.ts";

test("every address has a page", () => {
  assert.deepEqual(routeOf("/"), { page: "runs" });
  assert.deepEqual(routeOf("/runs/"), { page: "runs" });
  assert.deepEqual(routeOf("/runs/a.b"), { page: "run", run: "a.b", token: undefined });
  assert.deepEqual(routeOf("/runs/a~t1~2/tokens/t7"), { page: "run", run: "a~t1~2", token: "t7" });
  assert.deepEqual(routeOf("/workflows/order"), { page: "workflow", id: "order" });
  assert.deepEqual(routeOf("/inbox"), { page: "inbox" });
});

test("what is no page is said, not thrown", () => {
  for (const path of ["/runs/%E0%A4%A", "/runs/a/b", "/nothing", "/runs/a/tokens", "/inbox/1"]) assert.deepEqual(routeOf(path), { page: "unknown", path });
});

test("paths lead back to their pages", () => {
  assert.deepEqual(routeOf(runPath("a/b %")), { page: "run", run: "a/b %", token: undefined });
  assert.deepEqual(routeOf(tokenPath("a", "t1")), { page: "run", run: "a", token: "t1" });
  assert.equal(workflowPath("order", 3), "/workflows/order?version=3");
  assert.equal(withQuery("/runs", { status: "failed,timed_out", workflow: "", tag: undefined }), "/runs?status=failed,timed_out");
});
