// One command line from its words to its exit code. Tests call it with a terminal of their own.
import { UnexpectedResponseError, type Client } from "../client/index.ts";
import { Flags, parseLine } from "./arguments.ts";
import { COMMANDS } from "./commands.ts";
import { printUsage } from "./commands/help.ts";
import { addressOf, connect } from "./connection.ts";
import { EXIT, type ExitCode } from "./exit_codes.ts";
import { CommandError, isExpected, report } from "./failures.ts";
import { makeOutput } from "./output.ts";
import type { Terminal } from "./terminal.ts";

const HEALTH_WITHIN_MS = 3_000;

export async function runCommandLine(line: readonly string[], environment: Record<string, string | undefined>, terminal: Terminal): Promise<ExitCode> {
  // The format of an error must not depend on whether the rest of the line can be read.
  const end = line.indexOf("--");
  const isJson = line.slice(0, end < 0 ? undefined : end).includes("--json");
  let output = makeOutput(terminal, environment, isJson);
  let flags = new Flags(new Map());
  let client: Client | undefined;
  try {
    const parsed = parseLine(line, COMMANDS);
    flags = parsed.flags;
    output = makeOutput(terminal, environment, isJson, flags.text("url"));
    if (flags.has("help")) return printUsage(parsed.command, output);
    return await parsed.command.run({ ...parsed, output, terminal, environment, client: () => (client ??= connect(flags, environment)) });
  } catch (error) {
    const address = addressOf(flags, environment);
    if (isExpected(error) || client === undefined || !(await isForeign(flags, environment))) return report(error, output, address);
    const next = `start Curfew with \`${output.program} dev\`, or set CURFEW_URL (or --url) to the address of your deployment`;
    return report(new CommandError(`what answers at ${address} is not Curfew`, { exitCode: EXIT.notReachable, next }), output, address);
  }
}

/** Whether something else answers at the address: its JSON has other fields than a command reads. */
async function isForeign(flags: Flags, environment: Record<string, string | undefined>): Promise<boolean> {
  try {
    const health = await connect(flags, environment, { retries: 0, timeout_ms: HEALTH_WITHIN_MS }).request("GET", "/healthz");
    return typeof health?.version !== "string";
  } catch (error) {
    return error instanceof UnexpectedResponseError;
  }
}
