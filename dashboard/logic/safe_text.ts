// Text of runs for the screen. It may be anything: marks that turn the reading direction, control characters, a megabyte in one line.

/** What a view shows before the reader asks for the rest. */
export const SHOWN_CHARACTERS = 2_000;

/** Characters that are not seen themselves but change how other text is seen. Line ends and tabs are not among them. */
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** The text with invisible characters as `⟨U+202E⟩`. */
export const visible = (text: string): string =>
  text.replace(INVISIBLE, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** The beginning of a text, and how many characters are left out. A pair of surrogates is not cut in two. */
export function cut(text: string, max = SHOWN_CHARACTERS): { shown: string; left: number } {
  if (text.length <= max) return { shown: text, left: 0 };
  const end = /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : max;
  return { shown: text.slice(0, end), left: text.length - end };
}

/** A value as JSON, indented; what JSON cannot express as text. */
export function pretty(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch (error) {
    return `not shown: ${error instanceof Error ? error.message : error}`;
  }
}

/** A value in one short line: a string as it is, anything else as JSON. */
export function short(value: unknown, max = 120): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const { shown, left } = cut(text.replace(/\s+/g, " "), max);
  return left > 0 ? `${shown}…` : shown;
}
