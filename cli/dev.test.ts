// Ctrl-C while `curfew dev` starts. The Worker is one that never gets ready.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../tests/workerd/poll.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-dev-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const configuration = `
name = "never-ready"
main = "worker.mjs"
compatibility_date = "2026-11-01"

[[d1_databases]]
binding = "DB"
database_name = "db"
migrations_dir = "migrations"
`;
mkdirSync(join(directory, "migrations"));
writeFileSync(join(directory, "wrangler.toml"), configuration);
writeFileSync(join(directory, "worker.mjs"), 'export default { fetch: () => new Response("not yet", { status: 503 }) };');
writeFileSync(join(directory, "migrations", "0001_first.sql"), "CREATE TABLE first (id TEXT);");

const log = join(directory, ".curfew", "dev.log");
/** What has happened when the signal comes. */
const moments: [name: string, hasCome: () => boolean][] = [
  ["the migrations are applied", () => existsSync(join(directory, ".curfew", "dev.lock"))],
  ["wrangler dev starts", () => existsSync(log)],
  ["the Worker does not answer", () => existsSync(log) && /Ready on/.test(readFileSync(log, "utf8"))],
];

for (const [name, hasCome] of moments) {
  test(`Ctrl-C while ${name} ends at once, and leaves nothing behind`, async () => {
    rmSync(join(directory, ".curfew"), { recursive: true, force: true });
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    const args = ["--disable-warning=ExperimentalWarning", main, "dev", "--port", "0"];
    const env = { ...process.env, WRANGLER_REGISTRY_PATH: join(directory, "registry") };
    const dev = spawn(process.execPath, args, { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (chunk) => (printed += chunk));
    const closed = once(dev, "close");
    try {
      await until(name, () => hasCome() || dev.exitCode !== null, 60_000);
      const at = performance.now();
      dev.kill("SIGINT");
      const [code] = await closed;
      assert.deepEqual([code, printed], [0, ""]);
      // A Worker has a minute to get ready.
      assert.ok(performance.now() - at < 20_000, `${performance.now() - at} ms`);
      assert.equal(existsSync(join(directory, ".curfew", "dev.lock")), false);
    } finally {
      dev.kill("SIGKILL");
    }
  });
}
