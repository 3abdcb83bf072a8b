import assert from "node:assert/strict";
import type { RunView } from "./api-types.ts";

export function assertCompleted(run: RunView): void {
  assert.equal(run.status, "completed", JSON.stringify(run.error));
}
