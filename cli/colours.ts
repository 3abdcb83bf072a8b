// When text has colour, and which one a status has.

export type Paint = (text: string) => string;

export interface Colours {
  bold: Paint;
  dim: Paint;
  red: Paint;
  green: Paint;
  yellow: Paint;
  cyan: Paint;
}

const paint =
  (code: number, isOn: boolean): Paint =>
  (text) =>
    isOn && text !== "" ? `\x1b[${code}m${text}\x1b[0m` : text;

export const colours = (isOn: boolean): Colours => ({
  bold: paint(1, isOn),
  dim: paint(2, isOn),
  red: paint(31, isOn),
  green: paint(32, isOn),
  yellow: paint(33, isOn),
  cyan: paint(36, isOn),
});

/** `NO_COLOR` counts more than `FORCE_COLOR`; without both a terminal has colours. */
export function isColoured(environment: Record<string, string | undefined>, isTerminal: boolean): boolean {
  if ((environment["NO_COLOR"] ?? "") !== "") return false;
  const forced = environment["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTerminal;
}

/** Of runs, tokens and breakers. A status that a later version adds has none. */
export function statusPaint(status: string, of: Colours): Paint {
  switch (status) {
    case "completed":
    case "closed":
      return of.green;
    case "failed":
    case "timed_out":
    case "open":
    case "escalated":
      return of.red;
    case "awaiting_human":
    case "waiting":
    case "paused":
    case "compensating":
    case "half_open":
      return of.yellow;
    case "running":
    case "executing":
      return of.cyan;
    default:
      return of.dim;
  }
}
