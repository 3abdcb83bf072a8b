// `npm run engine-wasm`: the engine as its own wasm, engine/engine.wasm, its tests, and those of the test kit, which runs on it. Set-up
// builds it, too, because the dashboard simulates with it.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { holdingLock } from "./lock.mjs";
import { run, script, step } from "./terminal.mjs";
import { node22, root, WASM_TARGET } from "./toolchain.mjs";
import { orderFunctions } from "./wasm_order.mjs";

const PROFILE = "engine";
/** Those that need the wasm. */
const TESTS = ["engine/*.test.mjs", "testing/*.test.ts", "examples/gallery/*/*.test.ts"];

export const engineWasm = join(root, "engine", "engine.wasm");

/** Compiles the engine and returns the path of its wasm. Cargo does nothing where nothing changed. */
export async function buildEngine() {
  const targetDirectory = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
  mkdirSync(targetDirectory, { recursive: true });
  const features = ["--no-default-features", "--features", "engine"];
  // The linker keeps five bytes for each address, and by default leaves what it does not need as padding.
  const linker = ["--", "-C", "link-arg=--compress-relocations"];
  const args = ["rustc", "--locked", "--lib", "--target", WASM_TARGET, "--profile", PROFILE, ...features, ...linker];
  // Two set-ups at a time would copy half a file.
  await holdingLock(join(targetDirectory, "curfew-engine.lock"), async () => {
    const announcement = existsSync(engineWasm) ? undefined : "compiling the engine's wasm: usually 1 to 3 minutes the first time";
    await step("engine's wasm compiled", () => run("cargo", args, { cwd: root }), announcement);
    const compiled = readFileSync(join(targetDirectory, WASM_TARGET, PROFILE, "curfew.wasm"));
    writeFileSync(engineWasm, orderFunctions(compiled));
  });
  return engineWasm;
}

/** For set-up. A development build takes the wasm that is there, however old: optimising it takes minutes after each change. */
export async function engineForDashboard() {
  if (process.env.CURFEW_BUILD === "dev" && existsSync(engineWasm)) return;
  await buildEngine();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    const wasm = readFileSync(await buildEngine());
    const kib = (/** @type {number} */ bytes) => `${Math.round(bytes / 1024)} KiB`;
    console.log(`[curfew] engine/engine.wasm: ${kib(wasm.length)}, gzipped ${kib(gzipSync(wasm, { level: 9 }).length)}`);
    await run(node22(), ["--test", "--test-reporter=spec", "--disable-warning=ExperimentalWarning", ...TESTS], { cwd: root });
  });
}
