// `curfew init` in directories that are not empty.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { runCommandLine } from "./cli.ts";
import { installedFrom } from "./local/installed_from.ts";
import { packageRoot } from "./package_root.ts";
import { testTerminal } from "./test_terminal.ts";
import { VERSION } from "./version.ts";

const parent = mkdtempSync(join(tmpdir(), "curfew-init-"));
after(() => rmSync(parent, { recursive: true, force: true }));

let count = 0;
/** A directory with these files. */
function directoryWith(files: Record<string, string>): string {
  const directory = join(parent, `My Project ${++count}`);
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

async function init(directory: string, ...flags: string[]) {
  const terminal = testTerminal();
  const code = await runCommandLine(["init", directory, ...flags], { NO_COLOR: "1" }, terminal);
  return { code, out: terminal.out, errors: terminal.errors };
}

const read = (directory: string, name: string) => readFileSync(join(directory, name), "utf8");

test("files that a project has of its own are kept, and named", async () => {
  const own = { ".gitignore": "/node_modules\n.wrangler/\ndist\n", "tsconfig.json": "{}\n", "AGENTS.md": "# ours\n" };
  const directory = directoryWith(own);
  const { code, out, errors } = await init(directory);
  assert.equal(code, 0, errors);
  for (const [name, text] of Object.entries(own)) assert.equal(read(directory, name), text);
  assert.match(out, /^kept .*\/\.gitignore, without \.curfew, \.dev\.vars: add them$/m);
  assert.match(out, /^kept .*\/tsconfig\.json$/m);
  assert.match(out, /^wrote .*\/wrangler\.toml$/m);
  assert.doesNotMatch(out, /wrote .*(gitignore|tsconfig|AGENTS)/);
});

test("with --json, what was written and what was kept", async () => {
  const { out } = await init(directoryWith({ "tsconfig.json": "{}" }), "--json");
  const { files, kept } = JSON.parse(out);
  assert.deepEqual(kept, ["tsconfig.json"]);
  assert.ok(files.includes(".gitignore") && files.includes("wrangler.toml") && !files.includes("tsconfig.json"), out);
});

test("where Curfew's own files would be replaced, or another configuration would count, nothing is written", async () => {
  for (const name of ["wrangler.toml", "wrangler.jsonc", "wrangler.json"]) {
    const directory = directoryWith({ [name]: "", ".gitignore": "" });
    const { code, errors } = await init(directory);
    assert.equal(code, 1);
    assert.match(errors, new RegExp(`${name} is there already; nothing was written\\nname another directory`));
    assert.equal(existsSync(join(directory, "package.json")), false);
  }
});

test("the Worker has the name of the directory, also where another Worker would bind it", async () => {
  const directory = directoryWith({});
  await init(directory);
  const configuration = read(directory, "wrangler.toml");
  const name = /^name = "(.*)"$/m.exec(configuration)?.[1];
  assert.equal(name, `my-project-${count}`);
  assert.match(configuration, new RegExp(`service = "${name}"`));
  assert.doesNotMatch(configuration, /service = "curfew"/);
});

test("the package comes from where the one that runs was installed from", async () => {
  const at = (files: Record<string, unknown>) => {
    const root = directoryWith({});
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(join(root, dirname(name)), { recursive: true });
      writeFileSync(join(root, name), JSON.stringify(content));
    }
    return { root, from: installedFrom(join(root, "node_modules", "curfew"), join(root, "my shop")) };
  };
  const lock = (resolved: string) => ({ "node_modules/.package-lock.json": { packages: { "node_modules/curfew": { resolved } } } });
  assert.equal(at({ "package.json": { dependencies: { curfew: "file:../curfew.tgz" } } }).from, "file:../../curfew.tgz");
  assert.equal(at({ "package.json": { devDependencies: { curfew: "https://example.com/curfew.tgz" } } }).from, "https://example.com/curfew.tgz");
  assert.equal(at({ "package.json": {}, ...lock("file:../curfew.tgz") }).from, "file:../../curfew.tgz", "npm install --no-save");
  const range = `^${VERSION}`;
  assert.equal(at({ "package.json": { dependencies: { curfew: "^0.0.1" } }, ...lock("https://registry.npmjs.org/curfew/-/curfew-0.1.0.tgz") }).from, range);
  assert.equal(at({}).from, range);
  const checkout = directoryWith({});
  await init(checkout);
  const { devDependencies } = JSON.parse(read(checkout, "package.json"));
  assert.equal(join(checkout, devDependencies.curfew.slice("file:".length)), join(packageRoot, "dist", `curfew-${VERSION}.tgz`));
});

test("a directory with spaces can be copied, and its package has a name", async () => {
  const directory = directoryWith({});
  const { out } = await init(directory);
  assert.match(out, /^ {2}cd '.*\/My Project \d+'$/m);
  assert.equal(JSON.parse(read(directory, "package.json")).name, `my-project-${count}`);
});
