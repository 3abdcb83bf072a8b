// The size of what is deployed, the time before its first request, and what each dependency adds to the code.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { bindgen, compiled } from "../scripts/build.mjs";
import { buildEngine } from "../scripts/engine_wasm.mjs";
import { root } from "../tests/workerd/harness.ts";
import { clientSize } from "./client_size.ts";
import { rounded } from "./figures.ts";

/** Smaller crates are one line of the table. */
const LEAST_KIB = 8;

/** As wrangler reports it. */
export async function sizeFigures() {
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  const wrangler = async (...args: string[]): Promise<string> => {
    const script = join(root, "node_modules", "wrangler", "bin", "wrangler.js");
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...args, "-c", "wrangler.toml"], { cwd: root, timeout: 60_000 });
    return stdout;
  };
  try {
    const deployed = await wrangler("deploy", "--dry-run", "--outdir", directory);
    const started = await wrangler("check", "startup", "--outfile", join(directory, "startup.cpuprofile"));
    return {
      client_gzip_kib: await clientSize(),
      engine_gzip_kib: await engineGzipKib(),
      gzip_kib: Number(/gzip: ([\d.]+) KiB/.exec(deployed)?.[1]),
      startup_active_ms: Number(/Active: ([\d.]+) ms/.exec(started)?.[1]),
      code_kib: codeByCrate(await namedWasm(join(directory, "named"))),
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The engine as its own wasm, which `npm run engine-wasm` builds. */
async function engineGzipKib(): Promise<number> {
  return rounded(gzipSync(readFileSync(await buildEngine()), { level: 9 }).length / 1024);
}

/** The Worker's wasm with the names of its functions, which the deployed one has not. */
async function namedWasm(directory: string): Promise<Uint8Array> {
  await promisify(execFile)(await bindgen(), [compiled, directory, "--debug"]);
  return readFileSync(join(directory, "index_bg.wasm"));
}

/**
 * KiB of code by the crate that a function's name begins with, before compression. A generic function counts for the
 * crate that defines it, not for the one that uses it.
 */
function codeByCrate(wasm: Uint8Array): Record<string, number> {
  const sections = sectionsOf(wasm);
  const imported = importedFunctions(sections.get("2")!);
  const names = namesOf(sections.get("name")!);
  const bytes = new Map<string, number>();
  const code = new Reader(sections.get("10")!);
  const functions = code.number();
  for (let index = 0; index < functions; index += 1) {
    const size = code.number();
    code.skip(size);
    const crate = crateOf(names.get(imported + index) ?? "");
    bytes.set(crate, (bytes.get(crate) ?? 0) + size);
  }
  const small = [...bytes].filter(([, size]) => size < LEAST_KIB * 1024);
  const others = small.reduce((sum, [, size]) => sum + size, 0);
  const large = [...bytes].filter(([, size]) => size >= LEAST_KIB * 1024).toSorted((a, b) => b[1] - a[1]);
  return Object.fromEntries([...large, [`${small.length} others`, others] as const].map(([crate, size]) => [crate, rounded(size / 1024, 0)]));
}

/** `<&mut serde_json::ser::Serializer<W> as ...>::serialize_str` is serde_json's. */
const crateOf = (name: string): string => /(?:^|[<&( ])([a-z_][a-z0-9_]*)(?:\[[0-9a-f]+\])?::/.exec(name)?.[1] ?? "(no name)";

/** By number; custom sections by name. */
function sectionsOf(wasm: Uint8Array): Map<string, Uint8Array> {
  const reader = new Reader(wasm, 8);
  const sections = new Map<string, Uint8Array>();
  while (!reader.isAtEnd) {
    const id = reader.byte();
    const body = new Reader(reader.bytes(reader.number()));
    sections.set(id === 0 ? body.text() : String(id), body.rest());
  }
  return sections;
}

function importedFunctions(section: Uint8Array): number {
  const reader = new Reader(section);
  let functions = 0;
  for (let left = reader.number(); left > 0; left -= 1) {
    reader.text();
    reader.text();
    const kind = reader.byte();
    if (kind === 0) {
      functions += 1;
      reader.number();
      continue;
    }
    // A table and a global have a type before their limits, or a mutability after it.
    if (kind === 1) reader.byte();
    if (kind === 3) {
      reader.skip(2);
      continue;
    }
    const hasMaximum = reader.number() & 1;
    reader.number();
    if (hasMaximum) reader.number();
  }
  return functions;
}

/** Names of functions: the part numbered 1. */
function namesOf(section: Uint8Array): Map<number, string> {
  const reader = new Reader(section);
  const names = new Map<number, string>();
  while (!reader.isAtEnd) {
    const id = reader.byte();
    const part = new Reader(reader.bytes(reader.number()));
    if (id !== 1) continue;
    for (let left = part.number(); left > 0; left -= 1) names.set(part.number(), part.text());
  }
  return names;
}

class Reader {
  #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.#at++]!;
  }

  /** LEB128. */
  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  skip(count: number): void {
    this.#at += count;
  }

  bytes(count: number): Uint8Array {
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  text(): string {
    return new TextDecoder().decode(this.bytes(this.number()));
  }
}
