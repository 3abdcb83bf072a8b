// JSON that a command line gives: in the word itself, in a file (`@file`), or on standard input (`-`).
import { readFile, stat } from "node:fs/promises";
import { UsageError } from "./arguments.ts";
import type { Command } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** The largest body that the API takes. */
export const BYTES_MAX = 1_048_576;

export async function jsonFrom(word: string, name: string, terminal: Terminal, command: Command): Promise<unknown> {
  const wrong = (message: string) => new UsageError(`${name}: ${message}`, command);
  const parse = (text: string, where: string) => {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      const how = where === "it" ? `; write it as '{"name": "Ada"}', as @file, or as - for standard input` : "";
      throw wrong(`${where} is not JSON: ${(error as Error).message}${how}`);
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
