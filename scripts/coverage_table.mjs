// The coverage of each room from that of its files.

/** @typedef {{count: number, covered: number}} Counter */
/** @typedef {{path: string, lines: Counter, functions: Counter}} FileCoverage */
/** @typedef {{room: string, files: number, lines: Counter, functions: Counter}} RoomCoverage */

/**
 * A room is a folder of src/. Files elsewhere, such as tests, are left out.
 * @param {FileCoverage[]} files
 * @returns {RoomCoverage[]}
 */
export function roomsOf(files) {
  /** @type {Map<string, RoomCoverage>} */
  const rooms = new Map();
  for (const { path, lines, functions } of files) {
    const [top, folder, ...rest] = path.split(/[\\/]/);
    if (top !== "src" || folder === undefined) continue;
    const room = rest.length > 0 ? folder : "(lib.rs)";
    const sum = rooms.get(room) ?? { room, files: 0, lines: { count: 0, covered: 0 }, functions: { count: 0, covered: 0 } };
    sum.files += 1;
    add(sum.lines, lines);
    add(sum.functions, functions);
    rooms.set(room, sum);
  }
  return [...rooms.values()].sort((a, b) => (a.room < b.room ? -1 : 1));
}

/** @param {Counter} sum @param {Counter} more */
function add(sum, more) {
  sum.count += more.count;
  sum.covered += more.covered;
}

/** @param {Counter} counter */
const percent = ({ count, covered }) => (count === 0 ? "-" : `${((100 * covered) / count).toFixed(1)} %`);

/** @param {RoomCoverage[]} rooms @returns {string[]} */
export function table(rooms) {
  const total = { room: "all", files: 0, lines: { count: 0, covered: 0 }, functions: { count: 0, covered: 0 } };
  for (const { files, lines, functions } of rooms) {
    total.files += files;
    add(total.lines, lines);
    add(total.functions, functions);
  }
  const head = ["room", "files", "lines", "not run", "covered", "functions"];
  const rows = [...rooms, total].map(({ room, files, lines, functions }) =>
    [room, files, lines.count, lines.count - lines.covered, percent(lines), percent(functions)].map(String),
  );
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  return [head, ...rows].map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "));
}
