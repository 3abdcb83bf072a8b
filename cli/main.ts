#!/usr/bin/env node
// The program `curfew`.
import { runCommandLine } from "./cli.ts";
import { EXIT } from "./exit_codes.ts";
import { processTerminal } from "./terminal.ts";

const terminal = processTerminal();
let code: number;
try {
  code = await runCommandLine(process.argv.slice(2), process.env, terminal);
} catch (error) {
  terminal.writeError(`curfew: this is a bug of the command line: ${error instanceof Error ? error.stack : String(error)}\n`);
  code = EXIT.refused;
}
// Connections that are kept alive would delay the end; what was printed is written first.
process.exitCode = code;
process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
