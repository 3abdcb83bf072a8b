// `npm run package`: set-up, then the npm package, dist/curfew-<version>.tgz: the built Worker, the dashboard, its migrations, the command line, the client,
// test kit with the engine's wasm, schemas, examples, the template of a project and the documentation. Who installs it needs no Rust.
// `-- --check` then installs it into empty directories and uses it.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { dashboardOutput } from "./dashboard.mjs";
import { buildEngine } from "./engine_wasm.mjs";
import { setUp } from "./setup.mjs";
import { run, script, step } from "./terminal.mjs";
import { node22, npmBinary, quietEnvironment, root } from "./toolchain.mjs";

const dist = join(root, "dist");
const staging = join(dist, "package");

/** Builds the tarball and returns its path. */
export async function makePackage() {
  await setUp();
  await buildEngine();
  return step("package", async () => {
    rmSync(dist, { recursive: true, force: true });
    mkdirSync(staging, { recursive: true });
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    await bundleWorker();
    await bundleCommandLine(version);
    await bundleClient();
    await bundleTestKit();
    copyFiles();
    cpSync(dashboardOutput, join(staging, "dashboard"), { recursive: true });
    writeFileSync(join(staging, "wrangler.toml"), configuration());
    writeFileSync(join(staging, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
    const { stdout } = await promisify(execFile)("npm", ["pack", "--json", "--pack-destination", dist], { cwd: staging, env: quietEnvironment });
    return join(dist, JSON.parse(stdout)[0].filename);
  });
}

/** @param {string[]} args */
const esbuild = (args) => run(npmBinary("esbuild"), [...args, "--bundle", "--format=esm", "--log-level=warning"], { cwd: root, env: quietEnvironment });

/** Wrangler bundles it again, with the entry of the project around it. */
async function bundleWorker() {
  const output = join(staging, "worker");
  await esbuild(["src/worker/entry.mjs", "--external:cloudflare:*", "--external:./index_bg.wasm", `--outfile=${join(output, "index.js")}`]);
  cpSync(join(root, "build", "index_bg.wasm"), join(output, "index_bg.wasm"));
  cpSync(join(root, "package", "worker.d.ts"), join(output, "index.d.ts"));
}

/** @param {string} version */
async function bundleCommandLine(version) {
  const options = ["--platform=node", "--target=node20", `--define:CURFEW_VERSION=${JSON.stringify(version)}`];
  await esbuild(["cli/main.ts", ...options, `--outfile=${join(staging, "cli", "curfew.mjs")}`]);
}

async function bundleClient() {
  const output = join(staging, "client");
  await esbuild(["client/index.ts", "--target=es2022", "--sourcemap", `--outfile=${join(output, "index.js")}`]);
  await declare("tsconfig.client.json", "client", output);
}

/** The engine stands beside it, because the kit reads the wasm from there. */
async function bundleTestKit() {
  const [output, engine] = [join(staging, "testing"), join(staging, "engine")];
  const options = ["--platform=node", "--target=node20", "--sourcemap", "--external:../engine/engine.mjs"];
  await esbuild(["testing/index.ts", ...options, `--outfile=${join(output, "index.js")}`]);
  for (const name of ["engine.mjs", "engine.d.mts", "engine.wasm"]) cpSync(join(root, "engine", name), join(engine, name));
  const all = join(dist, "declarations");
  await declare("tsconfig.testing.json", ".", all);
  cpSync(join(all, "testing"), output, { recursive: true });
  rmSync(all, { recursive: true });
}

/** The declarations of a part's sources. @param {string} project @param {string} rootDirectory @param {string} output */
async function declare(project, rootDirectory, output) {
  const typescript = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--rootDir", rootDirectory, "--outDir", output];
  await run(node22(), [typescript, "-p", project, ...options], { cwd: root });
  for (const name of readdirSync(output, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".d.ts"))) {
    const file = join(output, name);
    // The compiler leaves these as they are, and an importer would look for the sources.
    writeFileSync(file, readFileSync(file, "utf8").replace(/from "(\.\.?\/[\w/]+)\.ts"/g, 'from "$1.js"'));
  }
}

function copyFiles() {
  const names = ["migrations", "schema", "examples", "docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "CHANGELOG.md"];
  // The gallery runs from a checkout only. Its workflows and pages are for readers of the documentation, which links to them.
  for (const name of [...names, "openapi/README.md", "src/api/openapi.json"]) cpSync(join(root, name), join(staging, name), { recursive: true });
  cpSync(join(root, "package", "template"), join(staging, "template"), { recursive: true });
}

/** That of the repository with the built Worker: `curfew dev` uses it where there is no project. */
function configuration() {
  return readFileSync(join(root, "wrangler.toml"), "utf8")
    .replace('main = "src/worker/entry.mjs"', 'main = "worker/index.js"')
    .replace('directory = "build/dashboard"', 'directory = "dashboard"')
    .replace(/^# Compiles what has changed.*\n\[build\]\ncommand = .*\n\n/m, "");
}

function manifest() {
  const { name, version, description, license, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return {
    name,
    version,
    description,
    license,
    type: "module",
    // Wrangler needs Node 22; on an older one `curfew dev` installs it for itself.
    engines: { node: ">=20" },
    bin: { curfew: "./cli/curfew.mjs" },
    exports: {
      "./client": { types: "./client/index.d.ts", default: "./client/index.js" },
      "./engine": { types: "./engine/engine.d.mts", default: "./engine/engine.mjs" },
      "./engine.wasm": "./engine/engine.wasm",
      "./testing": { types: "./testing/index.d.ts", default: "./testing/index.js" },
      "./worker": { types: "./worker/index.d.ts", default: "./worker/index.js" },
      "./schema/*.json": "./schema/*.json",
      "./package.json": "./package.json",
    },
    // The version with which the Worker was tested: the runtime is part of it.
    dependencies: { wrangler: devDependencies.wrangler },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await script(async () => {
    const tarball = await makePackage();
    if (!process.argv.includes("--check")) return;
    const args = ["--test", "--test-reporter=spec", "--disable-warning=ExperimentalWarning", "tests/package/package.test.ts"];
    await step("package in empty directories", () => run(node22(), args, { cwd: root, env: { ...process.env, CURFEW_TARBALL: tarball } }));
  });
}
