// One command line from its words to its exit code. Tests call it with a terminal of their own.
import type { Client } from "../client/index.ts";
import { Flags, parseLine } from "./arguments.ts";
import { COMMANDS } from "./commands.ts";
import { printUsage } from "./commands/help.ts";
import { addressOf, connect } from "./connection.ts";
import type { ExitCode } from "./exit_codes.ts";
import { report } from "./failures.ts";
import { makeOutput } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export async function runCommandLine(line: readonly string[], environment: Record<string, string | undefined>, terminal: Terminal): Promise<ExitCode> {
  // The format of an error must not depend on whether the rest of the line can be read.
  const end = line.indexOf("--");
  const isJson = line.slice(0, end < 0 ? undefined : end).includes("--json");
  let output = makeOutput(terminal, environment, isJson);
  let flags = new Flags(new Map());
  try {
    const parsed = parseLine(line, COMMANDS);
    flags = parsed.flags;
    output = makeOutput(terminal, environment, isJson, flags.text("url"));
    if (flags.has("help")) return printUsage(parsed.command, output);
    let client: Client | undefined;
    return await parsed.command.run({ ...parsed, output, terminal, environment, client: () => (client ??= connect(flags, environment)) });
  } catch (error) {
    return report(error, output, addressOf(flags, environment));
  }
}
