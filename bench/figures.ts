// Percentiles and tables.

export const median = (values: number[]): number => percentile(values, 0.5);

export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits));

export type Cell = string | number | undefined;

/** A table in plain text. The first row is its head; a dash stands for a figure that was not measured. */
export function printTable(rows: Cell[][]): void {
  const texts = rows.map((row) => row.map(text));
  const widths = texts[0]!.map((_, column) => Math.max(...texts.map((row) => row[column]!.length)));
  for (const [index, row] of texts.entries()) {
    console.log(row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join("  "));
    if (index === 0) console.log(widths.map((width) => "-".repeat(width)).join("  "));
  }
}

const text = (cell: Cell): string => (cell === undefined || Number.isNaN(cell) ? "-" : String(cell));
