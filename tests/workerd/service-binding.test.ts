// The example of the README, a Worker that calls Curfew over a service binding, works as it is written there. A request over the `fetch` of a
// binding without an entry point is HTTP and needs a token.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ADMIN, compatibility, moduleWorker, root, roleVars, startCurfew, type Curfew } from "./harness.ts";

const readme = readFileSync(join(root, "README.md"), "utf8");
const section = readme.split("\n## ").find((text) => text.startsWith("From another Worker"));

/** The only block of the section in this language. */
function block(language: string): string {
  const blocks = [...(section ?? "").matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))];
  assert.equal(blocks.length, 1, `the section has ${blocks.length} blocks of ${language}`);
  return blocks[0]?.[1] ?? "";
}

/** The Worker of the README, bound as the README says. */
function readmeWorker() {
  const [, binding, service, exportName, name] = /binding = "(\w+)", service = "(\w+)", entrypoint = "(\w+)", props = \{ name = "(\w+)" \}/.exec(block("toml")) ?? [];
  assert.ok(binding && service && exportName && name, "the README says how to bind it");
  const path = "caller.mjs";
  return {
    config: {
      name: "caller",
      ...compatibility,
      manifest: { mainModule: path, modulesRoot: root, modules: { [path]: { type: "esm" as const, contents: block("js") } } },
      triggers: [{ type: "fetch" as const, pattern: "*/caller" }],
      env: { [binding]: { type: "worker" as const, worker: service, exportName, props: { name } } },
    },
  };
}

let curfew: Curfew;
before(async () => {
  const bound = moduleWorker("bound", "tests/workerd/workers/bound-client.mjs", {
    triggers: [{ type: "fetch", pattern: "*/bound" }],
    env: { CURFEW: { type: "worker", worker: "curfew" } },
  });
  curfew = await startCurfew({ vars: roleVars, extraWorkers: [readmeWorker(), bound] });
  const hello = JSON.parse(readFileSync(join(root, "examples/hello.json"), "utf8"));
  const stored = await curfew.api("PUT", "/v1/workflows/hello", hello, ADMIN);
  assert.equal(stored.status, 201, stored.text);
});
after(() => curfew.dispose());

test("the Worker of the README starts a run and has its result", async () => {
  const answer = await curfew.api("POST", "/caller", { name: "Ada" });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual([answer.json.status, answer.json.greeting], ["completed", "Hello, Ada!"]);
  const run = await curfew.api("GET", `/v1/runs/${answer.json.run_id}`, undefined, ADMIN);
  assert.deepEqual([run.status, run.json.output, run.json.started_by], [200, { greeting: "Hello, Ada!" }, "worker:shop"]);
});

test("HTTP over a binding without an entry point needs a token", async () => {
  const request = (token?: string) => ({ url: "https://curfew/v1/runs", headers: token ? { authorization: `Bearer ${token}` } : {} });
  for (const [token, status] of [[undefined, 401], ["some-other-token-0123", 401], [ADMIN, 200]] as const) {
    assert.equal((await curfew.api("POST", "/bound", request(token))).status, status);
  }
});
