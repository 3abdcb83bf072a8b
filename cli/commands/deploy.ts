// `curfew deploy`: migrations of the database, then the Worker, which may read what they add.
import { dirname } from "node:path";
import type { Command, Invocation } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import { node22 } from "../local/node22.ts";
import { runWrangler, wranglerIn } from "../local/wrangler.ts";
import { configurationOf } from "./dev.ts";

export const deploy: Command = {
  name: "deploy",
  summary: "Applies the migrations of D1 and deploys the Worker with wrangler.",
  positionals: [],
  flags: [
    { name: "config", value: "file", summary: "A file of wrangler; by default `wrangler.toml` (or .jsonc, .json) here.", candidates: "file" },
    { name: "dry-run", summary: "Builds and checks the Worker; nothing leaves this machine." },
  ],
  examples: ["curfew deploy", "curfew deploy --dry-run"],
  run,
};

async function run({ flags, output }: Invocation): Promise<ExitCode> {
  const { file, isProject } = configurationOf(flags);
  if (!isProject) throw new CommandError("there is no wrangler.toml here", { next: "`curfew init` lays out a project; --config names a file elsewhere" });
  const wrangler = wranglerIn(dirname(file), await node22((line) => output.note(line)));
  const call = (args: string[]) =>
    runWrangler(wrangler, [...args, "-c", file], { isQuiet: output.isJson }).catch((error: Error) => {
      throw new CommandError(error.message);
    });
  const isDryRun = flags.has("dry-run");
  if (!isDryRun) await call(["d1", "migrations", "apply", "DB", "--remote"]);
  await call(["deploy", ...(isDryRun ? ["--dry-run"] : [])]);
  if (output.isJson) output.rawJson({ configuration: file, dry_run: isDryRun });
  else if (!isDryRun) output.note("next: CURFEW_URL=<its address> CURFEW_TOKEN=<a token> npx curfew put workflows/*");
  return EXIT.ok;
}
