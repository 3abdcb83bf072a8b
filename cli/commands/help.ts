// `curfew help` and `curfew version`.
import { flagText, GLOBAL_FLAGS, shortUsage, usage, type Command, type Invocation } from "../command.ts";
import { UsageError } from "../arguments.ts";
import { EXIT, EXIT_MEANINGS, type ExitCode } from "../exit_codes.ts";
import { nearest } from "../nearest.ts";
import type { Output } from "../output.ts";
import { wrapped } from "../terminal_text.ts";
import { VERSION } from "../version.ts";

/** The list is given, because `help` is part of it. */
export function makeHelp(commands: () => readonly Command[]): Command {
  const help: Command = {
    name: "help",
    summary: "Lists the commands, or shows the usage of one.",
    positionals: [{ name: "command", isOptional: true }],
    flags: [],
    examples: ["curfew help start"],
    run: async ({ words, output }) => {
      const [name] = words;
      if (name === undefined) return printList(commands(), output);
      const command = commands().find((one) => one.name === name);
      if (command !== undefined) return printUsage(command, output);
      const near = nearest(commands().map((one) => one.name), name);
      throw new UsageError(`"${name.slice(0, 40)}" is no command of curfew${near === undefined ? "" : `; did you mean "${near}"?`}`, help);
    },
  };
  return help;
}

export const version: Command = {
  name: "version",
  summary: "Prints the version of the command line, and that of Curfew if it answers.",
  positionals: [],
  flags: [],
  examples: ["curfew version"],
  run: printVersion,
};

const ASKED_FOR_MS = 2_000;

async function printVersion({ output, client }: Invocation): Promise<ExitCode> {
  const health = await client()
    .request("GET", "/healthz", { retries: 0, timeout_ms: ASKED_FOR_MS })
    .catch(() => undefined);
  const server = typeof health?.version === "string" ? health.version : null;
  if (output.isJson) output.json({ version: VERSION, server });
  else output.lines(`curfew ${VERSION}`, ...(server === null ? [] : [`server ${server}`]));
  return EXIT.ok;
}

export function printUsage(command: Command, output: Output): ExitCode {
  if (output.isJson) {
    const { name, summary, positionals, flags, examples } = command;
    output.rawJson({ name, summary, usage: usage(command), positionals, flags: [...flags, ...GLOBAL_FLAGS], examples });
    return EXIT.ok;
  }
  const { bold } = output.colours;
  const width = Math.min(output.width, 110);
  output.lines(command.summary, "", `${bold("usage")}  ${shortUsage(command)}${command.flags.length > 0 ? " [flags]" : ""}`);
  for (const [title, flags] of [
    ["flags", command.flags],
    ["flags of every command", GLOBAL_FLAGS],
  ] as const) {
    if (flags.length > 0) output.lines("", bold(title), ...described(flags.map((flag) => [flagText(flag), flag.summary]), width));
  }
  output.lines("", bold("examples"), ...command.examples.map((example) => `  ${example}`));
  return EXIT.ok;
}

function printList(commands: readonly Command[], output: Output): ExitCode {
  const listed = commands.filter(({ isHidden }) => !isHidden);
  if (output.isJson) {
    output.rawJson(listed.map(({ name, summary }) => ({ name, summary })));
    return EXIT.ok;
  }
  const { bold } = output.colours;
  const width = Math.min(output.width, 110);
  output.lines(
    "The command line of Curfew, a coordinator of durable workflows.",
    "",
    `${bold("usage")}  curfew <command> [flags]`,
    "",
    bold("commands"),
    ...described(listed.map(({ name, summary }) => [name, summary]), width),
    "",
    bold("flags of every command"),
    ...described(GLOBAL_FLAGS.map((flag) => [flagText(flag), flag.summary]), width),
    "",
    bold("exit codes"),
    ...described(Object.entries(EXIT_MEANINGS), width),
    "",
    "`curfew help <command>` shows its flags and examples.",
  );
  return EXIT.ok;
}

/** Names, and beside them sentences that are wrapped to the width. */
function described(entries: readonly (readonly [name: string, text: string])[], width: number): string[] {
  const indent = Math.max(...entries.map(([name]) => name.length)) + 4;
  return entries.flatMap(([name, text]) => {
    // Too narrow for two columns: the text is below the name.
    if (width - indent < 20) return [`  ${name}`, ...wrapped(text, Math.max(10, width - 4)).map((line) => `    ${line}`)];
    return wrapped(text, width - indent).map((line, index) => `${index === 0 ? `  ${name}`.padEnd(indent) : " ".repeat(indent)}${line}`);
  });
}
