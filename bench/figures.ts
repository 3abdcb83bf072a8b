// Small arithmetic and printing for the bench.

export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits));

/** A table in plain text; the first row is its head. */
export function printTable(rows: (string | number)[][]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  for (const [index, row] of rows.entries()) {
    console.log(row.map((cell, column) => pad(String(cell), widths[column]!, column)).join("  "));
    if (index === 0) console.log(widths.map((width) => "-".repeat(width)).join("  "));
  }
}

const pad = (text: string, width: number, column: number): string => (column === 0 ? text.padEnd(width) : text.padStart(width));
