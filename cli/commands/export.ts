// `curfew export`: a run with its history in one JSON value, for a report, a bug, a test or a what-if.
import { writeFileSync } from "node:fs";
import type { Command, Invocation } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";

export const exportRun: Command = {
  name: "export",
  summary: "Prints a run with its history as one JSON value, which `simulate --from` takes.",
  positionals: [{ name: "run", candidates: "run" }],
  flags: [
    { name: "redact", value: "what", summary: "`values` leaves inputs, outputs, states and payloads out; texts of errors stay.", candidates: ["values"] },
    { name: "output", value: "file", summary: "Writes it to a file instead.", candidates: "file" },
  ],
  examples: ["curfew export order-1 --output order-1.json", "curfew export order-1 --redact values"],
  run,
};

async function run({ words, flags, output, client }: Invocation): Promise<ExitCode> {
  const redact = flags.choice("redact", ["values"]);
  const exported = await client().request("GET", "/v1/runs/{run_id}/export", {
    path: { run_id: words[0]! },
    query: redact === undefined ? {} : { redact: "values" },
  });
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
