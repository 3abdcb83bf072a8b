// What a command is: its words, its flags and what it does. The parser, the help, the completions and the page docs/cli.md all follow from
// the same description.
import type { Client } from "../client/index.ts";
import type { Flags } from "./arguments.ts";
import type { ExitCode } from "./exit_codes.ts";
import type { Output } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** What completions offer: ids that the API knows, names of files, or fixed words. */
export type Candidates = "run" | "workflow" | "file" | readonly string[];

export interface Positional {
  name: string;
  isOptional?: boolean;
  /** It takes all the words that follow. */
  isRepeated?: boolean;
  candidates?: Candidates;
}

export interface Flag {
  name: string;
  /** The name of its value. A flag without one is a switch. */
  value?: string;
  summary: string;
  /** It may be given several times; commas separate values, too. */
  isRepeated?: boolean;
  candidates?: Candidates;
}

export interface Invocation {
  /** The words of the command line that are no flags, in the order of `positionals`. */
  words: string[];
  flags: Flags;
  output: Output;
  terminal: Terminal;
  environment: Record<string, string | undefined>;
  /** Made when it is first asked for: `help` needs no connection. */
  client(): Client;
}

export interface Command {
  name: string;
  summary: string;
  positionals: readonly Positional[];
  flags: readonly Flag[];
  examples: readonly string[];
  /** Commands for scripts of the shell are not listed. */
  isHidden?: boolean;
  run(invocation: Invocation): Promise<ExitCode>;
}

/** The flags of every command. */
export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "url", value: "url", summary: "The address of Curfew; by default CURFEW_URL, or http://localhost:8787." },
  { name: "token", value: "token", summary: "The token of the caller; by default CURFEW_TOKEN. The variable is safer: other users see the arguments of a process." },
  { name: "json", summary: "One JSON value on standard output and nothing else; `watch` prints one JSON line for each event." },
  { name: "help", summary: "Prints the usage of the command." },
];

/** `curfew start <workflow>`. */
export function shortUsage(command: Command): string {
  const words = command.positionals.map(({ name, isOptional, isRepeated }) => {
    const word = `<${name}>${isRepeated ? "..." : ""}`;
    return isOptional ? `[${word}]` : word;
  });
  return ["curfew", command.name, ...words].join(" ");
}

export const flagText = ({ name, value }: Flag): string => `--${name}${value === undefined ? "" : ` <${value}>`}`;

/** `curfew start <workflow> [--input <json>] [--wait]`. */
export const usage = (command: Command): string => [shortUsage(command), ...command.flags.map((flag) => `[${flagText(flag)}]`)].join(" ");
