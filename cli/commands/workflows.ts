// `curfew workflows` and `curfew workflow`: what is stored, and one document of it.
import type { Command, Invocation } from "../command.ts";
import { formatMoment } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { escaped, jsonText } from "../terminal_text.ts";
import { optional } from "./controls.ts";
import { all } from "./watch.ts";

export const workflows: Command = {
  name: "workflows",
  summary: "Lists the stored workflows by id, each with its newest version.",
  positionals: [],
  flags: [],
  examples: ["curfew workflows", "curfew workflows --json | jq '.[].id'"],
  run: listWorkflows,
};

async function listWorkflows({ output, terminal, client }: Invocation): Promise<ExitCode> {
  const api = client();
  const items = await all(api.pages((page) => api.list("workflows", { limit: 1_000, ...page })));
  if (output.isJson) output.json(items);
  else if (items.length === 0) output.note("no workflow is stored");
  else {
    const now = terminal.now();
    output.table(
      [{ title: "WORKFLOW", isFlexible: true }, { title: "VERSION" }, { title: "STORED" }, { title: "BY", isFlexible: true, isOmittedIfEmpty: true }],
      items.map(({ id, version, created_at, created_by }) => [escaped(id), String(version), formatMoment(created_at, now), escaped(created_by ?? "")]),
    );
  }
  return EXIT.ok;
}

export const workflow: Command = {
  name: "workflow",
  summary: "Prints the document of a stored workflow.",
  positionals: [{ name: "workflow", candidates: "workflow" }],
  flags: [{ name: "version", value: "n", summary: "A version of the workflow; the newest by default." }],
  examples: ["curfew workflow order > order.json", "curfew workflow order --version 3"],
  run: showWorkflow,
};

async function showWorkflow({ words, flags, output, terminal, client }: Invocation): Promise<ExitCode> {
  const stored = await client().read("workflows", words[0]!, optional("version", flags.whole("version", 1, Number.MAX_SAFE_INTEGER)));
  if (output.isJson) {
    output.json(stored);
    return EXIT.ok;
  }
  // Beside the document, which may go into a file.
  const { id, version, created_at, created_by } = stored;
  output.note(escaped(`${id} v${version}, stored ${formatMoment(created_at, terminal.now())}${created_by === undefined ? "" : ` by ${created_by}`}`));
  output.lines(jsonText(stored.document, 2));
  return EXIT.ok;
}
