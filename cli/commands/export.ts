// `curfew export`: everything that the API shows of a run in one JSON value, for a report or a bug.
import { writeFileSync } from "node:fs";
import type { Client } from "../../client/index.ts";
import type { Command, Invocation } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";

export const exportRun: Command = {
  name: "export",
  summary: "Prints everything of a run as one JSON value: the run, its document, tokens, events and timeouts.",
  positionals: [{ name: "run", candidates: "run" }],
  flags: [
    { name: "redact", value: "what", summary: "`values` leaves inputs, outputs, states and payloads out; texts of errors stay.", candidates: ["values"] },
    { name: "output", value: "file", summary: "Writes it to a file instead.", candidates: "file" },
  ],
  examples: ["curfew export order-1 --output order-1.json", "curfew export order-1 --redact values"],
  run,
};

/** Fields that hold data of the user. */
const VALUES = new Set(["input", "output", "state", "context", "payload", "partial_artifacts", "context_for_resume", "result", "partial", "comment", "reason"]);

async function run({ words, flags, output, client }: Invocation): Promise<ExitCode> {
  const isRedacted = flags.choice("redact", ["values"]) !== undefined;
  const whole = await collected(client(), words[0]!);
  const exported = isRedacted ? withoutValues(whole) : whole;
  const file = flags.text("output");
  if (file === undefined) {
    output.rawJson(exported);
    return EXIT.ok;
  }
  try {
    writeFileSync(file, `${JSON.stringify(exported, null, 2)}\n`);
  } catch (error) {
    throw new CommandError(`${file} cannot be written: ${(error as Error).message}`);
  }
  if (output.isJson) output.rawJson({ file });
  else output.note(`wrote ${file}`);
  return EXIT.ok;
}

async function collected(client: Client, id: string): Promise<Record<string, unknown>> {
  const run = await client.run(id);
  const [tokens, events, lines, document] = await Promise.all([
    all(client.pages((page) => client.tokens(id, page))),
    all(client.pages((page) => client.events(id, page))),
    all(client.pages((page) => client.timeouts(id, page))),
    client.read("workflows", run.workflow_id, { version: run.version }),
  ]);
  const timeouts = [];
  for (const { recovery_path } of lines) timeouts.push(await client.timeout(id, Number(recovery_path.split("/").at(-1))));
  return { format: "curfew-export/1", run, workflow: document.document, tokens, events, timeouts };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** The document stays: it is no data of a run. */
function withoutValues({ workflow, ...rest }: Record<string, unknown>): Record<string, unknown> {
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).filter(([name]) => !VALUES.has(name)).map(([name, field]) => [name, strip(field)]));
  };
  return { ...(strip(rest) as object), workflow };
}
