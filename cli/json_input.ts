// JSON that a command line gives: in the word itself, in a file (`@file`), or on standard input (`-`).
import { readFile, stat } from "node:fs/promises";
import { UsageError } from "./arguments.ts";
import type { Command } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** The largest body that the API takes. */
export const BYTES_MAX = 1_048_576;

/** The API takes 100. */
const LEVELS_MAX = 1_000;

/** The value of a JSON text. What could not be sent as it is written is an error, whose message follows the name of the text. */
export function parsedJson(text: string, advice = ""): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`is not JSON: ${(error as Error).message}${advice}`);
  }
  if (isDeeper(value, LEVELS_MAX)) throw new RangeError(`is nested deeper than ${LEVELS_MAX} levels, which the API refuses`);
  const rounded = roundedNumber(text);
  if (rounded !== undefined) throw new RangeError(`has the number ${rounded.slice(0, 40)}, which cannot be sent exactly; write it as a string`);
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  return typeof value === "object" && value !== null && (levels === 0 || Object.values(value).some((field) => isDeeper(field, levels - 1)));
}

/** The first number that JavaScript cannot hold: an integer, as ids often are, which the API would keep, or one that is too large. */
function roundedNumber(text: string): string | undefined {
  // Texts are skipped as a whole.
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g)) {
    if (token.startsWith('"')) continue;
    const value = Number(token);
    if (!Number.isFinite(value) || (/^-?\d{16,}$/.test(token) && BigInt(token) !== BigInt(value))) return token;
  }
  return undefined;
}

export async function jsonFrom(word: string, name: string, terminal: Terminal, command: Command): Promise<unknown> {
  const wrong = (message: string) => new UsageError(`${name}: ${message}`, command);
  const parse = (text: string, where: string) => {
    try {
      return parsedJson(text, where === "it" ? `; write it as '{"name": "Ada"}', as @file, or as - for standard input` : "");
    } catch (error) {
      throw wrong(`${where} ${(error as Error).message}`);
    }
  };
  if (word === "-") {
    const text = await terminal.readInput(BYTES_MAX);
    if (text === undefined) throw wrong("standard input is larger than 1 MiB, which the API refuses");
    if (text.trim() === "") throw wrong("standard input is empty");
    return parse(text, "standard input");
  }
  if (word.startsWith("@")) return parse(await textOf(word.slice(1), wrong), word.slice(1));
  if (Buffer.byteLength(word) > BYTES_MAX) throw wrong("it is larger than 1 MiB, which the API refuses");
  return parse(word, "it");
}

async function textOf(path: string, wrong: (message: string) => Error): Promise<string> {
  if (path === "") throw wrong("@ needs the name of a file: @input.json");
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw wrong(`there is no file ${path}`);
  if (found.isDirectory()) throw wrong(`${path} is a directory`);
  if (found.size > BYTES_MAX) throw wrong(`${path} has ${found.size} bytes; the API takes 1 MiB (${BYTES_MAX})`);
  // A pipe has no size before it is read.
  const text = await readFile(path, "utf8").catch((error: Error) => {
    throw wrong(`${path} cannot be read: ${error.message}`);
  });
  if (Buffer.byteLength(text) > BYTES_MAX) throw wrong(`${path} is larger than 1 MiB, which the API refuses`);
  return text;
}
