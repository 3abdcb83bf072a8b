// Redraws lines in place: one write for each frame, so that no half of it is ever seen.
import type { Terminal } from "../terminal.ts";
import { widthOf } from "../terminal_text.ts";

const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
// Terminals that know it show the frame at once; the others ignore it.
const BEGIN_FRAME = "\x1b[?2026h";
const END_FRAME = "\x1b[?2026l";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";

export class Screen {
  readonly #terminal: Terminal;
  #shown: readonly string[] = [];
  #columns = 0;
  #isOpen = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** The lines of a frame that leaves one for the cursor. */
  get height(): number {
    return Math.max(1, this.#terminal.rows() - 1);
  }

  draw(lines: readonly string[]): void {
    const columns = this.#terminal.columns();
    const isSame = this.#isOpen && columns === this.#columns && lines.length === this.#shown.length && lines.every((line, index) => line === this.#shown[index]);
    if (isSame) return;
    const body = lines.map((line) => `${line}${CLEAR_LINE}\r\n`).join("");
    this.#terminal.write(`${BEGIN_FRAME}${this.#isOpen ? "" : HIDE_CURSOR}${this.#toTop(columns)}${body}${CLEAR_BELOW}${END_FRAME}`);
    this.#shown = lines;
    this.#columns = columns;
    this.#isOpen = true;
  }

  /** Leaves the last frame where it is, and the cursor below it. */
  close(): void {
    if (this.#isOpen) this.#terminal.write(SHOW_CURSOR);
    this.#isOpen = false;
    this.#shown = [];
  }

  /** A narrower terminal has wrapped the lines of the last frame, so that there are more of them than were written. */
  #toTop(columns: number): string {
    const rows = this.#shown.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
    const up = Math.min(rows, this.#terminal.rows() - 1);
    return up > 0 ? `\r\x1b[${up}A` : "\r";
  }
}
