// Text for a terminal: without control characters, cut and padded by the columns that it takes.

// C0, DEL, C1, and what reorders or hides text: a run's output could otherwise move the cursor, rename the window or pose as another text.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const NAMES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Control characters as their escapes in JSON. Everything that comes from the API passes through here. */
export function escaped(text: string): string {
  return text.replace(UNSAFE, (character) => NAMES[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** JSON on one line, or with `indent` on several. It has the same value, and characters that could control the terminal are escaped. */
export function jsonText(value: unknown, indent = 0): string {
  // JSON itself escapes those below space, except for the line breaks that it adds.
  return (JSON.stringify(value, null, indent) ?? "null").split("\n").map(escaped).join("\n");
}

/** The same for text of several lines, as prompts and messages are: line breaks stay. */
export function escapedLines(text: string): string[] {
  return text.replaceAll("\r\n", "\n").split("\n").map(escaped);
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const COMBINING = /^[\p{Mn}\p{Me}\ufe0f]$/u;
const SEQUENCE = /\x1b\[[0-9;]*m/g;

/** What another program printed: wrangler colours some texts also in a file or a pipe. */
export const withoutColours = (text: string): string => text.replace(SEQUENCE, "");

function characterWidth(character: string): number {
  if (COMBINING.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** The columns that a text takes; colours take none. */
export function widthOf(text: string): number {
  const plain = withoutColours(text);
  // The usual case needs no look at each character.
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  let width = 0;
  for (const character of plain) width += characterWidth(character);
  return width;
}

/** The beginning of a text without colours, with `…` where it was cut. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (widthOf(text) <= columns) return text;
  let [kept, width] = ["", 0];
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

export const padded = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - widthOf(text)));

/** Lines of at most `columns`, broken at spaces where there are some. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= columns || line === "") {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
    while (widthOf(line) > columns) {
      const head = cut(line, columns + 1).slice(0, -1);
      if (head === "") break;
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  lines.push(line);
  return lines;
}

/** A JSON value as one line: strings as they are. */
export function inOneLine(value: unknown): string {
  return escaped(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}
