// @ts-check
// Writes the rows of a commit, on this side of the wasm: one crossing for all.

/** The values of a row in its statement. */
const ROW = "(?, ?, ?, ?)";
const VALUES = 4;

/**
 * How many of so many rows go into one statement. All of them, if they are few; the platform binds a hundred values, and every
 * number of rows is a statement of its own that has to be prepared.
 * @param {number} rows
 */
const together = (rows) => [24, 8].find((some) => rows >= some) ?? rows;

/** Statements by how many rows they write: an isolate has one text for each. @type {Map<number, string>} */
const statements = new Map();

export class Saver {
  #storage;
  #save;
  #delete;
  /** What Cloudflare would bill, since the object came into memory. */
  rowsWritten = 0;
  rowsRead = 0;

  /**
   * @param {DurableObjectStorage} storage
   * @param {string} save a statement for one row
   * @param {string} remove
   */
  constructor(storage, save, remove) {
    this.#storage = storage;
    this.#save = save;
    this.#delete = remove;
  }

  /**
   * All of it or, if it throws, nothing: a commit of several statements is a transaction.
   * @param {string} text place, key, value and status of each row, then the places of those that are to go
   * @param {Uint32Array} ends where each of them ends
   * @param {number} rows
   */
  save(text, ends, rows) {
    /** @type {string[]} */
    const parts = [];
    let from = 0;
    for (const end of ends) {
      parts.push(text.slice(from, end));
      from = end;
    }
    const isOneStatement = rows === together(rows) && parts.length === rows * VALUES;
    if (isOneStatement) this.#write(this.#saveOf(rows), parts);
    else this.#storage.transactionSync(() => this.#saveAll(parts, rows));
  }

  /** @param {string[]} parts @param {number} rows */
  #saveAll(parts, rows) {
    let at = 0;
    while (at < rows) {
      const some = together(rows - at);
      this.#write(this.#saveOf(some), parts.slice(at * VALUES, (at + some) * VALUES));
      at += some;
    }
    for (const place of parts.slice(rows * VALUES)) this.#write(this.#delete, [place]);
  }

  /** @param {number} rows */
  #saveOf(rows) {
    const known = statements.get(rows);
    if (known !== undefined) return known;
    const statement = this.#save.replace(ROW, Array(rows).fill(ROW).join(", "));
    statements.set(rows, statement);
    return statement;
  }

  /** @param {string} statement @param {string[]} values */
  #write(statement, values) {
    const cursor = this.#storage.sql.exec(statement, ...values);
    this.rowsWritten += cursor.rowsWritten;
    this.rowsRead += cursor.rowsRead;
  }
}
