// `curfew signal` and `curfew publish`: what comes from outside, to one run or to every workflow that it triggers.
import type { Command, Invocation } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { jsonFrom } from "../json_input.ts";
import { escaped, escapedLines } from "../terminal_text.ts";
import { printChanged } from "./controls.ts";

const PAYLOAD = { name: "payload", isOptional: true } as const;

export const signal: Command = {
  name: "signal",
  summary: "Sends a signal to a run. The payload is JSON, `@file`, or `-` for standard input; `{}` by default.",
  positionals: [{ name: "run", candidates: "run" }, { name: "name" }, PAYLOAD],
  flags: [],
  examples: [`curfew signal order-1 payment '{"paid": true}'`],
  run: async (invocation) => {
    const [runId = "", name = "", payload] = invocation.words;
    return printChanged(await invocation.client().signal(runId, name, await payloadOf(payload, invocation, signal)), invocation);
  },
};

export const publish: Command = {
  name: "publish",
  summary: "Reports an event, which starts every workflow that it triggers. The payload is as that of `signal`.",
  positionals: [{ name: "event" }, PAYLOAD],
  flags: [{ name: "key", value: "key", summary: "With the same key nothing is started twice. A random one by default." }],
  examples: [`curfew publish order.placed '{"order": 7}' --key order-7`],
  run: runPublish,
};

const payloadOf = async (word: string | undefined, { terminal }: Invocation, command: Command): Promise<unknown> =>
  word === undefined ? {} : jsonFrom(word, "<payload>", terminal, command);

async function runPublish(invocation: Invocation): Promise<ExitCode> {
  const { words, flags, output, client } = invocation;
  const answer = await client().publish(words[0]!, await payloadOf(words[1], invocation, publish), { key: flags.text("key") });
  if (output.isJson) output.json(answer);
  else {
    output.lines(...answer.runs.map(({ id, workflow_id, created }) => `${escaped(id)}  ${escaped(workflow_id)}  ${created ? output.colours.green("started") : "started before"}`));
    if (answer.runs.length === 0 && answer.refused.length === 0) output.note(escaped(`no workflow has the trigger ${answer.event}`));
    for (const { workflow_id, error } of answer.refused) output.problem(`${output.errorColours.red("refused")} ${escaped(workflow_id)}: ${escapedLines(error.message).join(" ")}`);
  }
  return answer.refused.length === 0 ? EXIT.ok : EXIT.refused;
}
