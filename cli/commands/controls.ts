// The commands that change one run: extend, cancel, pause, resume, retry, restart.
import type { Client, Run } from "../../client/index.ts";
import { UsageError } from "../arguments.ts";
import { statusPaint } from "../colours.ts";
import type { Command, Flag, Invocation } from "../command.ts";
import { formatLeft } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { CommandError } from "../failures.ts";
import { escaped } from "../terminal_text.ts";
import { leftOf } from "../watch/rows.ts";
import { clockAheadOf } from "../watch/state.ts";

const RUN = { name: "run", candidates: "run" } as const;
export const AS: Flag = { name: "as", value: "name", summary: "The name of the caller. It counts in development only." };
const VERSION: Flag = { name: "version", value: "n", summary: "Goes on with this version of the workflow." };
const MODES = ["retry_step", "discard_and_retry", "escalate"] as const;

/** Prints the run as it is after the change. */
export function printChanged(run: Run, { output, terminal }: Pick<Invocation, "output" | "terminal">): ExitCode {
  if (output.isJson) {
    output.json(run);
    return EXIT.ok;
  }
  const now = terminal.now();
  const limit = run.deadlines.find(({ kind }) => kind === "workflow");
  const left = limit === undefined ? "" : `  ${formatLeft(leftOf(limit).leftMs(now + clockAheadOf(run, now)))} left${leftOf(limit).isStopped ? ", stopped" : ""}`;
  output.lines(`${escaped(run.id)}  ${statusPaint(run.status, output.colours)(escaped(run.status.replaceAll("_", " ")))}${left}`);
  return EXIT.ok;
}

const control = (parts: Omit<Command, "positionals" | "run">, change: (api: Client, invocation: Invocation) => Promise<Run>): Command => ({
  ...parts,
  positionals: [RUN],
  run: async (invocation) => printChanged(await change(invocation.client(), invocation), invocation),
});

const versionOf = ({ flags }: Invocation) => flags.whole("version", 1, Number.MAX_SAFE_INTEGER);

export const extend: Command = control(
  {
    name: "extend",
    summary: "Gives a run more time.",
    flags: [
      { name: "by", value: "duration", summary: "So much longer: `10m`." },
      { name: "until", value: "moment", summary: "Until this moment: `2026-11-16T18:00:00Z`." },
    ],
    examples: ["curfew extend order-1 --by 10m"],
  },
  (api, { words, flags }) => {
    const [by, until] = [flags.duration("by"), flags.text("until")];
    if ((by === undefined) === (until === undefined)) throw new UsageError("extend takes either --by 10m or --until 2026-11-16T18:00:00Z", extend);
    if (by !== undefined) return api.extend(words[0]!, { by });
    const at = /^\d{12,15}$/.test(until!) ? Number(until) : /^\d{4}-\d{2}-\d{2}[T ]/.test(until!) ? Date.parse(until!) : NaN;
    if (Number.isNaN(at)) throw new UsageError(`--until: "${until!.slice(0, 40)}" is no moment; write 2026-11-16T18:00:00Z or Unix milliseconds`, extend);
    return api.extend(words[0]!, { until: at });
  },
);

export const cancel: Command = control(
  {
    name: "cancel",
    summary: "Ends a run. Calls in flight are aborted, sub-workflows are cancelled.",
    flags: [{ name: "reason", value: "text", summary: "Why. It is kept on the run." }, AS],
    examples: [`curfew cancel order-1 --reason "the shop is closed"`],
  },
  (api, { words, flags }) => api.cancel(words[0]!, { ...optional("reason", flags.text("reason")), ...optional("by", flags.text("as")) }),
);

export const pause: Command = control(
  { name: "pause", summary: "Stops all clocks of a run; nothing new begins.", flags: [AS], examples: ["curfew pause order-1"] },
  (api, { words, flags }) => api.pause(words[0]!, optional("by", flags.text("as"))),
);

export const resume: Command = control(
  { name: "resume", summary: "Lets a paused run go on.", flags: [AS], examples: ["curfew resume order-1"] },
  (api, { words, flags }) => api.resume(words[0]!, optional("by", flags.text("as"))),
);

export const retry: Command = control(
  {
    name: "retry",
    summary: "Lets a run go on that failed or timed out, in the recommended way.",
    flags: [
      { name: "mode", value: "mode", summary: "`retry_step`, `discard_and_retry` or `escalate`; the recommended one by default.", candidates: MODES },
      { name: "token-id", value: "token", summary: "Discards only the writes of this token." },
      VERSION,
      AS,
    ],
    examples: ["curfew retry order-1", "curfew retry order-1 --mode discard_and_retry", "curfew retry order-1 --version 4"],
  },
  async (api, invocation) => {
    const { words, flags } = invocation;
    const mode = (flags.choice("mode", MODES) as (typeof MODES)[number] | undefined) ?? (await recommendedMode(api, invocation));
    return api.retry(words[0]!, { mode, ...optional("token_id", flags.text("token-id")), ...optional("version", versionOf(invocation)), ...optional("by", flags.text("as")) });
  },
);

/** Where a person should look first, the person at the terminal chooses: escalating would only ask the same person again. */
async function recommendedMode(api: Client, { words, output }: Invocation): Promise<(typeof MODES)[number]> {
  const { recommended, why, reason, status, resumable, options, version } = await api.resumeOptions(words[0]!);
  if (!resumable) throw new CommandError(`run ${words[0]} cannot be retried: ${reason ?? `it is ${status}`}`, { next: `begin it again: ${output.command(`restart ${words[0]}`)}` });
  const advice = version.recommended ? `${version.why ?? ""} ${version.how ?? ""}`.trim() : "";
  if (recommended === null || recommended === "escalate") {
    const ways = options.filter(({ open }) => open).map(({ mode, what }) => `  --mode ${mode}: ${what}`);
    throw new CommandError(`a plain retry of run ${words[0]} is not recommended: ${why ?? "it would fail again"}`, { next: [...(advice === "" ? [] : [advice]), "choose one:", ...ways].join("\n") });
  }
  output.note(escaped(`mode ${recommended}: ${why ?? "recommended"}`), ...(advice === "" ? [] : [escaped(advice)]));
  return recommended;
}

export const restart: Command = control(
  {
    name: "restart",
    summary: "Begins a run again, as its next attempt.",
    flags: [{ name: "from", value: "node", summary: "From this node, with the state as it was then." }, VERSION, AS],
    examples: ["curfew restart order-1", "curfew restart order-1 --from charge"],
  },
  (api, invocation) => {
    const { words, flags } = invocation;
    return api.restart(words[0]!, { ...optional("from_node_id", flags.text("from")), ...optional("version", versionOf(invocation)), ...optional("by", flags.text("as")) });
  },
);

/** A field of a body, if it has a value. */
export function optional<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: Value };
}
