// `npm run example -- order`: set-up, then one example of examples/gallery. Without a name it lists them.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { script, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root } from "./toolchain.mjs";

const gallery = join(root, "examples", "gallery");

await script(async () => {
  const [name, ...rest] = process.argv.slice(2);
  const names = readdirSync(gallery)
    .filter((entry) => existsSync(join(gallery, entry, "demo.mjs")))
    .sort();
  if (name === undefined) return list(names);
  if (!names.includes(name)) throw new StepFailed(`there is no example ${JSON.stringify(name)}: take one of ${names.join(", ")}`);
  if (rest.length > 0) throw new StepFailed(`one example at a time: npm run example -- ${name}`);
  await setUp();
  await play(name);
});

/** Each with the heading of its README. @param {string[]} names */
function list(names) {
  const width = Math.max(...names.map((name) => name.length));
  const heading = (/** @type {string} */ name) => /^# (.*)$/m.exec(readFileSync(join(gallery, name, "README.md"), "utf8"))?.[1] ?? "";
  const lines = names.map((name) => `  npm run example -- ${name.padEnd(width)}  ${heading(name)}`);
  console.log(["Examples that run by themselves:", "", ...lines].join("\n"));
}

/** On Node 22, which miniflare needs. @param {string} name @returns {Promise<void>} */
function play(name) {
  const args = ["--disable-warning=ExperimentalWarning", join(gallery, "run.mjs"), name];
  const child = spawn(node22(), args, { cwd: root, env: quietEnvironment, stdio: "inherit" });
  // The terminal sends Ctrl-C to both; a plain `kill` reaches this process only.
  process.on("SIGINT", () => {});
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on("close", (code) => {
      process.exitCode = code ?? 1;
      resolve();
    });
  });
}
