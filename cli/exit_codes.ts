// The exit codes of every command.

export const EXIT = {
  ok: 0,
  refused: 1,
  usage: 2,
  failed: 3,
  timedOut: 4,
  cancelled: 5,
  notReachable: 6,
  unauthorized: 7,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: Record<ExitCode, string> = {
  [EXIT.ok]: "Done. With `--wait` or `watch`: the run completed.",
  [EXIT.refused]: "The API refused the request, or something else went wrong.",
  [EXIT.usage]: "The command line is wrong: an unknown verb or flag, a missing value, an input that is no JSON. Nothing was sent.",
  [EXIT.failed]: "The run ended as `failed`.",
  [EXIT.timedOut]: "The run ended as `timed_out`.",
  [EXIT.cancelled]: "The run ended as `cancelled`.",
  [EXIT.notReachable]: "Curfew does not answer at its address.",
  [EXIT.unauthorized]: "The token is missing, unknown or not allowed to do this.",
  [EXIT.interrupted]: "Ctrl-C. A run that was watched goes on.",
};

const ENDS: Record<string, ExitCode> = { completed: EXIT.ok, failed: EXIT.failed, timed_out: EXIT.timedOut, cancelled: EXIT.cancelled };

/** Undefined for a run that has not ended. */
export const exitCodeOf = (runStatus: string): ExitCode | undefined => (Object.hasOwn(ENDS, runStatus) ? ENDS[runStatus] : undefined);
