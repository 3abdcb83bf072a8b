// `curfew breakers`: which dependencies are cut off, and closing one by hand.
import type { Breaker } from "../../client/index.ts";
import { statusPaint } from "../colours.ts";
import type { Command, Invocation } from "../command.ts";
import { formatLeft, formatMoment } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit_codes.ts";
import { escaped } from "../terminal_text.ts";
import { AS, optional } from "./controls.ts";
import { all } from "./watch.ts";

export const breakers: Command = {
  name: "breakers",
  summary: "Lists the circuit breakers that ever counted a failure, or closes one.",
  positionals: [],
  flags: [{ name: "reset", value: "key", summary: "Closes the breaker with this key." }, AS],
  examples: ["curfew breakers", "curfew breakers --reset payments"],
  run,
};

async function run({ flags, output, terminal, client }: Invocation): Promise<ExitCode> {
  const api = client();
  const key = flags.text("reset");
  const items: Breaker[] = key === undefined ? await all(api.pages((page) => api.breakers({ limit: 1_000, ...page }))) : [await api.resetBreaker(key, optional("by", flags.text("as")))];
  if (output.isJson) {
    output.json(key === undefined ? items : items[0]);
    return EXIT.ok;
  }
  if (items.length === 0) {
    output.note("no breaker ever counted a failure");
    return EXIT.ok;
  }
  const now = terminal.now();
  output.table(
    [{ title: "BREAKER", isFlexible: true }, { title: "STATE" }, { title: "FAILURES" }, { title: "OPENED" }, { title: "NEXT TRIAL" }],
    items.map(({ key, state, failures, opened_at, trial_at }) => [
      escaped(key),
      { text: escaped(state), paint: statusPaint(state, output.colours) },
      String(failures),
      opened_at === null ? "" : formatMoment(opened_at, now),
      trial_at === null ? "" : trial_at <= now ? "with the next call" : `in ${formatLeft(trial_at - now)}`,
    ]),
  );
  return EXIT.ok;
}
