// The example of the README, a Worker that calls Curfew over a service binding, works as it is written there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compatibility, OPERATE, root, roleVars, startCurfew, type Curfew, ADMIN } from "./harness.ts";

const readme = readFileSync(join(root, "README.md"), "utf8");
const section = readme.split("\n## ").find((text) => text.startsWith("From another Worker"));

/** The only block of the section in this language. */
function block(language: string): string {
  const blocks = [...(section ?? "").matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))];
  assert.equal(blocks.length, 1, `the section has ${blocks.length} blocks of ${language}`);
  return blocks[0]?.[1] ?? "";
}

/** The Worker of the README, bound as the README says, with a secret `token`. */
function caller(name: string, token: string) {
  const [, binding, service] = /binding = "(\w+)", service = "(\w+)"/.exec(block("toml")) ?? [];
  assert.ok(binding && service, "the README says how to bind it");
  const path = "caller.mjs";
  return {
    config: {
      name,
      ...compatibility,
      manifest: { mainModule: path, modulesRoot: root, modules: { [path]: { type: "esm" as const, contents: block("js") } } },
      triggers: [{ type: "fetch" as const, pattern: `*/${name}` }],
      env: { [binding]: { type: "worker" as const, worker: service }, CURFEW_TOKEN: { type: "text" as const, value: token } },
    },
  };
}

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ vars: roleVars, extraWorkers: [caller("caller", OPERATE), caller("stranger", "some-other-token-0123")] });
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
  assert.deepEqual([run.status, run.json.output], [200, { greeting: "Hello, Ada!" }]);
});

test("with a wrong token it says what Curfew answered", async () => {
  const answer = await curfew.api("POST", "/stranger", { name: "Ada" });
  assert.equal(answer.status, 502);
  assert.match(answer.text, /token/);
});
