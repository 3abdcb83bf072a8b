// Tables that fit the terminal. A column that says so is cut first; the others keep their width as long as they can.
import { cut, padded, widthOf } from "./terminal_text.ts";

export interface Column {
  title: string;
  /** It is cut before the others. */
  isFlexible?: boolean;
  /** Without a value in any row it is left out. */
  isOmittedIfEmpty?: boolean;
}

export interface Cell {
  text: string;
  /** Adds colour to a text that has been cut and padded. */
  paint?: (text: string) => string;
}

const GAP = 2;
const LEAST = 4;

/** The lines of a table, its titles first. No line is wider than `width`. */
export function table(all: readonly Column[], rows: readonly (string | Cell)[][], width: number, paintTitle: (text: string) => string): string[] {
  const everyCell = rows.map((row) => row.map((cell) => (typeof cell === "string" ? { text: cell } : cell)));
  const used = all.map((column, index) => !column.isOmittedIfEmpty || everyCell.some((row) => row[index]?.text !== ""));
  // In a terminal of a few columns the last ones are left out.
  const most = Math.max(1, Math.floor((width + GAP) / (LEAST + GAP)));
  const shown = <Item>(items: readonly Item[]) => items.filter((_, index) => used[index]).slice(0, most);
  const columns = shown(all);
  const cells = everyCell.map(shown);
  const widths = fitted(
    columns.map((column, index) => cells.reduce((widest, row) => Math.max(widest, widthOf(row[index]?.text ?? "")), widthOf(column.title))),
    columns,
    width,
  );
  const line = (row: readonly Cell[]) =>
    row
      .map(({ text, paint = (plain) => plain }, index) => {
        const kept = cut(text, widths[index] ?? 0);
        // The last column is not padded: copied lines have no spaces at their end.
        return paint(index === row.length - 1 ? kept : padded(kept, widths[index] ?? 0));
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  const titles = columns.map(({ title }) => ({ text: title, paint: paintTitle }));
  return [titles, ...cells].map(line);
}

function fitted(wanted: number[], columns: readonly Column[], width: number): number[] {
  const widths = [...wanted];
  const least = Math.min(LEAST, width);
  const excess = () => widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1) - width;
  for (const mayShrink of [(index: number) => columns[index]?.isFlexible === true, () => true]) {
    while (excess() > 0) {
      // The widest one that may shrink; at once by as much as makes no difference to the others.
      const candidates = widths.map((one, index) => (mayShrink(index) && one > least ? one : 0));
      const widest = Math.max(...candidates);
      if (widest <= 0) break;
      const index = candidates.indexOf(widest);
      const next = Math.max(least, ...candidates.filter((_, other) => other !== index));
      widths[index] = Math.max(least, widest - Math.max(1, Math.min(excess(), widest - next)));
    }
  }
  return widths;
}
