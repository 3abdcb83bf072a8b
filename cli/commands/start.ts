// `curfew start`: starts a run, and waits for its end or watches it if asked to.
import type { Command, Invocation } from "../command.ts";
import { UsageError } from "../arguments.ts";
import { EXIT, exitCodeOf, type ExitCode } from "../exit_codes.ts";
import { jsonFrom } from "../json_input.ts";
import { endLines, waysBack } from "../run_text.ts";
import { statusPaint } from "../colours.ts";
import { escaped } from "../terminal_text.ts";
import { waitForEnd } from "../wait.ts";
import { AS, optional } from "./controls.ts";
import { watchRun } from "./watch.ts";

export const start: Command = {
  name: "start",
  summary: "Starts a run of a workflow.",
  positionals: [{ name: "workflow", candidates: "workflow" }],
  flags: [
    { name: "input", value: "json", summary: "The input: JSON, `@file`, or `-` for standard input. `{}` by default." },
    { name: "id", value: "run", summary: "The id of the run. The same id with the same request is the same run." },
    { name: "version", value: "n", summary: "A version of the workflow; the newest by default." },
    { name: "timeout", value: "duration", summary: "The longest that the run may take: `30s`, `10m`, `1h30m`." },
    AS,
    { name: "wait", summary: "Waits for the end and prints the output; the exit code says how it ended." },
    { name: "watch", summary: "As `curfew watch`." },
  ],
  examples: [`curfew start hello --input '{"name": "Ada"}' --wait`, "curfew start order --input @order.json --id order-1 --watch"],
  run,
};

async function run(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output, terminal, client } = invocation;
  if (flags.has("wait") && flags.has("watch")) throw new UsageError("--wait and --watch exclude each other: choose one", start);
  const input = flags.text("input");
  const started = await client().start(words[0]!, {
    input: input === undefined ? {} : await jsonFrom(input, "--input", terminal, start),
    ...optional("run_id", flags.text("id")),
    ...optional("version", flags.whole("version", 1, Number.MAX_SAFE_INTEGER)),
    ...optional("timeout", flags.duration("timeout")),
    ...optional("by", flags.text("as")),
  });

  if (flags.has("watch")) {
    // Its id, before anything can be lost.
    if (output.isJson) output.jsonLine(started);
    return watchRun(started.id, invocation);
  }
  if (flags.has("wait")) {
    const ended = await waitForEnd(started, invocation);
    if (output.isJson) output.json(ended);
    else output.lines(...endLines(ended, await waysBack(ended, client()), output));
    return exitCodeOf(ended.status) ?? EXIT.refused;
  }
  if (output.isJson) {
    output.json(started);
    return EXIT.ok;
  }
  const status = statusPaint(started.status, output.colours)(escaped(started.status.replaceAll("_", " ")));
  output.lines(`${escaped(started.id)}  ${escaped(started.workflow_id)} v${started.version}  ${status}`);
  if (exitCodeOf(started.status) === undefined) output.note(`watch it: ${output.command(`watch ${started.id}`)}`);
  return EXIT.ok;
}
