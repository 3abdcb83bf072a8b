// The OpenAPI document: it is served to everyone, it is valid, and the harness finds answers that break it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { breach, document } from "./contract.ts";
import { ADMIN, roleVars, root, startCurfew, type Curfew } from "./harness.ts";

let guarded: Curfew;

before(async () => {
  guarded = await startCurfew({ vars: roleVars });
});

after(() => guarded.dispose());

test("the document is served without a credential, as it is in the repository", async () => {
  const response = await guarded.api("GET", "/openapi.json");
  assert.equal(response.status, 200);
  assert.deepEqual(response.json, document);
  const { version } = (await guarded.api("GET", "/healthz")).json;
  assert.equal(document.info.version, version);
  assert.equal((await guarded.api("POST", "/openapi.json", {})).status, 405);
  assert.equal((await guarded.api("GET", "/openapi.json?pretty=1")).status, 400);
});

test("the schemas of documents are served without a credential", async () => {
  for (const name of ["workflow", "task", "action"]) {
    const response = await guarded.api("GET", `/schema/${name}.json`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/schema+json");
    assert.equal(response.text, readFileSync(join(root, `schema/${name}.json`), "utf8"));
  }
  assert.equal((await guarded.api("GET", "/schema/nothing.json")).status, 404);
  const stored = { $schema: `${guarded.url}/schema/workflow.json`, id: "with-schema", nodes: [{ id: "a" }] };
  assert.equal((await guarded.api("PUT", "/v1/workflows/with-schema", stored, ADMIN)).status, 201);
  const started = await guarded.api("POST", "/v1/workflows/with-schema/runs?wait_ms=10000", {}, ADMIN);
  assert.equal(started.json.status, "completed");
});

test("the document is valid OpenAPI, and every name in it is used once", async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors, null, 1));
  assert.equal(validator.version, "3.1");
  const operations = Object.values<Record<string, any>>(document.paths).flatMap((path) => Object.values(path));
  const ids = operations.map(({ operationId }) => operationId);
  assert.deepEqual(ids, [...new Set(ids)]);
});

test("every reference leads somewhere, and every component is used", () => {
  const text = JSON.stringify(document);
  const references = new Set([...text.matchAll(/"#\/(components\/[^"]+)"/g)].map(([, reference]) => reference));
  const has = (reference: string) => reference.split("/").reduce((value, part) => value?.[part], document) !== undefined;
  assert.deepEqual([...references].filter((reference) => !has(reference!)), []);
  const components = ["schemas", "responses", "headers"].flatMap((kind) => Object.keys(document.components[kind]).map((name) => `components/${kind}/${name}`));
  // These two are only described: an item of a batch is refused by itself, and a line of JSON Lines is text.
  const described = ["components/schemas/BatchItem", "components/schemas/TimeoutLine"];
  assert.deepEqual(components.filter((name) => !references.has(name) && !described.includes(name)), []);
});

test("everything has a sentence", () => {
  const missing: string[] = [];
  const visit = (value: any, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    // Others are conditions on fields that have their sentence elsewhere.
    const fields = value.additionalProperties === false ? Object.entries<any>(value.properties ?? {}) : [];
    for (const [name, { $ref, description = "" }] of fields) if (!$ref && !description.endsWith(".")) missing.push(`${place}/${name}`);
    for (const [name, inner] of Object.entries(value)) visit(inner, `${place}/${name}`);
  };
  visit(document.components.schemas, "");
  for (const [path, operations] of Object.entries<Record<string, any>>(document.paths)) {
    for (const [method, { summary, parameters = [] }] of Object.entries(operations)) {
      if (!summary.endsWith(".")) missing.push(`${method} ${path}`);
      for (const { name, description } of parameters) if (!description.endsWith(".")) missing.push(`${method} ${path} ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

test("an answer that breaks the contract is found", () => {
  const headers = (more: Record<string, string> = {}) =>
    new Headers({ "content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff", ...more });
  const health = { status: "ok", version: "1" };
  const at = (path: string, status: number, body: unknown, more?: Record<string, string>) =>
    breach("GET", path, { status, headers: headers(more), text: typeof body === "string" ? body : JSON.stringify(body) });
  assert.equal(at("/healthz", 200, health), undefined);
  assert.match(at("/healthz", 200, { ...health, more: 1 }) ?? "", /additional properties.*more/);
  assert.match(at("/healthz", 200, { status: "ok" }) ?? "", /required.*version/);
  assert.match(at("/healthz", 200, "ok") ?? "", /not JSON/);
  assert.match(at("/healthz", 201, health) ?? "", /no such status/);
  assert.match(at("/healthz", 200, health, { "content-type": "text/plain" }) ?? "", /content type/);
  assert.match(at("/healthz", 200, health, { "x-curfew-bill": "rows_read=1" }) ?? "", /x-curfew-bill/);
  assert.match(at("/nowhere", 200, health) ?? "", /must be 404/);
  const error = (code: string) => ({ error: { code, message: "no" } });
  assert.equal(at("/v1/runs/x", 404, error("not_found")), undefined);
  assert.match(at("/v1/runs/x", 404, error("run_exists")) ?? "", /allowedValues/);
  assert.match(at("/v1/runs", 404, error("not_found")) ?? "", /no such status/);
  const bare = breach("GET", "/healthz", { status: 200, headers: new Headers({ "content-type": "application/json" }), text: JSON.stringify(health) });
  assert.match(bare ?? "", /header Cache-Control is missing/);
});
