// What `curfew dev` stores again when a file changes, and what it prints of it. The API is one of the test.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { AuthError, InvalidError, type Client } from "../client/index.ts";
import { until } from "../tests/workerd/poll.ts";
import { ProjectDocuments } from "./local/project_documents.ts";
import { makeOutput } from "./output.ts";
import { startWords } from "./start_words.ts";
import { testTerminal } from "./test_terminal.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-project-"));
after(() => rmSync(directory, { recursive: true }));

let count = 0;

/** A project with these files, and a catalogue that counts versions. */
function project(files: Record<string, string>) {
  const root = join(directory, String(++count));
  const write = (name: string, text: string) => {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), text);
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  const catalogue = new Map<string, string[]>();
  const put = async (_: string, document: { id: string; isRefused?: boolean; needsToken?: boolean }) => {
    if (document.needsToken) throw new AuthError(401, { code: "unauthorized", message: "send a token" });
    if (document.isRefused) throw new InvalidError(400, { code: "invalid_document", message: "no" });
    const versions = catalogue.get(document.id) ?? [];
    const text = JSON.stringify(document);
    if (versions.at(-1) !== text) versions.push(text);
    catalogue.set(document.id, versions);
    return { id: document.id, version: versions.length, warnings: [] };
  };
  const terminal = testTerminal();
  const documents = new ProjectDocuments(join(root, "workflows"), { put } as unknown as Client, makeOutput(terminal, {}, false), new AbortController().signal);
  /** What was printed since the last call. */
  const printed = () => {
    const text = terminal.errors;
    terminal.errors = "";
    return text;
  };
  return { documents, write, printed };
}

const greeting = (name: string) => `import { greeting } from "${name}"; export default { id: "greet", nodes: [], greeting };`;

for (const [where, name] of [
  ["beside the documents", "lib/words.mts"],
  ["among the documents", "workflows/words.mts"],
  ["missing when `dev` starts", "later/words.mts"],
] as const) {
  test(`what a document imports, ${where}, is stored with it and not reported`, async () => {
    const isLater = name.startsWith("later/");
    const { documents, write, printed } = project({ "workflows/greet.mts": greeting(`../${name}`), ...(isLater ? { "later/other.txt": "" } : { [name]: `export const greeting = "one";` }) });
    await documents.store();
    if (isLater) assert.match(printed(), /^not stored .*greet\.mts cannot be imported/);
    else assert.equal(printed(), "stored workflow greet v1\n");
    documents.watch();
    try {
      write(name, `export const greeting = "two";`);
      const version = isLater ? 1 : 2;
      await until("the new version", () => printed() === `stored workflow greet v${version}\n`, 10_000);
    } finally {
      documents.stop();
    }
  });
}

test("a document that has not changed is not printed again, a refused one and its correction are", async () => {
  const { documents, write, printed } = project({ "workflows/a.json": `{"id": "a", "nodes": []}`, "workflows/b.json": `{"id": "b", "nodes": []}` });
  await documents.store();
  assert.equal(printed(), "stored workflow a v1\nstored workflow b v1\n");
  assert.deepEqual(documents.workflows.map(({ id }) => id), ["a", "b"]);
  await documents.store();
  assert.equal(printed(), "");
  write("workflows/b.json", `{"id": "b", "nodes": [], "isRefused": true}`);
  for (const _ of ["once", "again"]) {
    await documents.store();
    assert.match(printed(), /^refused workflow b \(.*b\.json\): no\n$/);
    assert.deepEqual(documents.workflows.map(({ id }) => id), ["a"]);
  }
  write("workflows/b.json", `{"id": "b", "nodes": []}`);
  await documents.store();
  assert.equal(printed(), "stored workflow b v1\n");
});

test("where a token is missing it says so", async () => {
  const { documents, printed } = project({ "workflows/a.json": `{"id": "a", "nodes": [], "needsToken": true}` });
  await documents.store();
  assert.match(printed(), /^refused workflow a \(.*a\.json\): send a token\n  set CURFEW_TOKEN \(or --token\) to a token of this deployment\n$/);
});

test("a module without a document that no other one imports is reported", async () => {
  const { documents, printed } = project({ "workflows/words.mts": `export const greeting = "one";` });
  await documents.store();
  assert.match(printed(), /^not stored .*words\.mts has no default export/);
});

test("a start to copy has what the input of the workflow needs", () => {
  assert.equal(startWords({ id: "plain" }), "start plain --input '{}' --watch");
  const input_schema = { required: ["name", "size", "kind"], properties: { name: { type: "string" }, size: { type: ["integer", "null"] }, kind: { enum: ["a", "b"] }, note: { type: "string" } } };
  assert.equal(startWords({ id: "order", input_schema }), `start order --input '{"name":"...","size":1,"kind":"a"}' --watch`);
});
