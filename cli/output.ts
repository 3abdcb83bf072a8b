// What commands print: JSON or text on standard output, notes and errors on standard error.
import { colours, isColoured, type Colours } from "./colours.ts";
import { isoTimes } from "./iso_times.ts";
import { table, type Cell, type Column } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { escaped, jsonText } from "./terminal_text.ts";

/** Wide enough for every table: a pipe has no width, and `grep` should find whole values. */
const UNLIMITED = 10_000;

export interface Output {
  isJson: boolean;
  /** On standard output. */
  colours: Colours;
  /** On standard error. */
  errorColours: Colours;
  /** The columns of a line. */
  width: number;
  /** Prints an answer of the API with ISO times, as the only value of this call. */
  json(value: unknown): void;
  /** Prints a value as it is. */
  rawJson(value: unknown): void;
  /** One value of many, on a line of its own. */
  jsonLine(value: unknown): void;
  lines(...lines: string[]): void;
  table(columns: readonly Column[], rows: readonly (string | Cell)[][]): void;
  /** For people, while standard output stays as it is; nothing with `--json`. */
  note(...lines: string[]): void;
  /** What went wrong. */
  problem(...lines: string[]): void;
  /** How this command line was called: `curfew`, or `npx curfew`, which finds it without an installation for the whole machine. */
  program: string;
  /** A command to copy, for the same address as this one. A token is left out: it would be shown. */
  command(words: string): string;
}

/** `url` is that of the command line; a variable also counts for the next command. */
export const commandFor = (url: string | undefined, program = "curfew") => (words: string): string => escaped(`${program} ${words}${url === undefined ? "" : ` --url ${quoted(url)}`}`);

/** A word of a shell. */
export const quoted = (text: string): string => (/^[\w.:/@%+~=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`);

export function makeOutput(terminal: Terminal, environment: Record<string, string | undefined>, isJson: boolean, url?: string): Output {
  const painted = colours(!isJson && isColoured(environment, terminal.isOutputTerminal));
  const width = terminal.isOutputTerminal ? terminal.columns() : UNLIMITED;
  const text = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");
  const print = (...lines: string[]) => terminal.write(text(lines));
  const rawJson = (value: unknown) => print(jsonText(value, 2));
  // npm says so to what it runs.
  const program = environment["npm_command"] === "exec" ? "npx curfew" : "curfew";
  return {
    isJson,
    colours: painted,
    errorColours: colours(isColoured(environment, terminal.isErrorTerminal)),
    width,
    json: (value) => rawJson(isoTimes(value)),
    rawJson,
    jsonLine: (value) => print(jsonText(isoTimes(value))),
    lines: print,
    table: (columns, rows) => print(...table(columns, rows, width, painted.bold)),
    note: (...lines) => {
      if (!isJson) terminal.writeError(text(lines));
    },
    problem: (...lines) => terminal.writeError(text(lines)),
    program,
    command: commandFor(url, program),
  };
}
