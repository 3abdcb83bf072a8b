// A terminal for tests: it keeps what was printed, and shows the screen that a real one would show.
import type { Terminal } from "./terminal.ts";

export interface TestTerminal extends Terminal {
  out: string;
  errors: string;
  /** One for each write to standard output. */
  writes: string[];
  answers: string[];
  input: string;
  resize(columns: number, rows: number): void;
  interrupt(): void;
  /** What is to be seen, with the lines that have left the screen at the top. */
  screen(): VisibleScreen;
}

export function testTerminal(size: { columns: number; rows: number } | undefined = undefined): TestTerminal {
  let { columns, rows } = size ?? { columns: 80, rows: 24 };
  const resized = new Set<() => void>();
  const interrupted = new Set<() => void>();
  const listening = (set: Set<() => void>) => (callback: () => void) => {
    set.add(callback);
    return () => void set.delete(callback);
  };
  const terminal: TestTerminal = {
    out: "",
    errors: "",
    writes: [],
    answers: [],
    input: "",
    isOutputTerminal: size !== undefined,
    isErrorTerminal: size !== undefined,
    isInputTerminal: size !== undefined,
    columns: () => columns,
    rows: () => rows,
    now: Date.now,
    write: (text) => {
      terminal.out += text;
      terminal.writes.push(text);
    },
    writeError: (text) => void (terminal.errors += text),
    readInput: async (bytesMax) => (Buffer.byteLength(terminal.input) > bytesMax ? undefined : terminal.input),
    ask: async (question) => {
      terminal.errors += question;
      return terminal.answers.shift();
    },
    onResize: listening(resized),
    onInterrupt: listening(interrupted),
    onSuspend: () => () => {},
    resize: (newColumns, newRows) => {
      [columns, rows] = [newColumns, newRows];
      resized.forEach((callback) => callback());
    },
    interrupt: () => interrupted.forEach((callback) => callback()),
    screen: () => visibleScreen(terminal.out, columns, rows),
  };
  return terminal;
}

export interface VisibleScreen {
  lines: string[];
  isCursorShown: boolean;
}

/** The sequences that the command line uses, and no others: an unknown one is an error. */
export function visibleScreen(text: string, columns: number, rows: number): VisibleScreen {
  const lines: string[][] = [[]];
  let [row, column, isCursorShown] = [0, 0, true];
  // The first line of the terminal moves down the text as it scrolls.
  const top = () => Math.max(0, lines.length - rows);
  const pattern = /\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]/gu;
  let consumed = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index !== consumed) throw new Error(`unknown sequence at ${JSON.stringify(text.slice(consumed, consumed + 10))}`);
    consumed += match[0].length;
    const [whole, parameters = "", final] = match;
    if (final !== undefined) {
      if (final === "A") row = Math.max(top(), row - Number(parameters || 1));
      else if (final === "K") lines[row]!.length = Math.min(lines[row]!.length, column);
      else if (final === "J") {
        lines[row]!.length = Math.min(lines[row]!.length, column);
        // The rows below are still there, but empty.
        for (let below = row + 1; below < lines.length; below++) lines[below] = [];
      } else if (parameters === "?25") isCursorShown = final === "h";
      else if (final !== "m" && parameters !== "?2026") throw new Error(`unknown sequence ${JSON.stringify(whole)}`);
    } else if (whole === "\r") column = 0;
    else if (whole === "\n") {
      row++;
      // The driver of a terminal adds the carriage return.
      column = 0;
      if (row === lines.length) lines.push([]);
    } else {
      if (column >= columns) throw new Error(`a line is wider than ${columns}: ${lines[row]!.join("")}`);
      lines[row]![column++] = whole;
    }
  }
  const shown = lines.map((line) => Array.from(line, (character) => character ?? " ").join(""));
  while (shown.at(-1) === "") shown.pop();
  return { lines: shown, isCursorShown };
}
