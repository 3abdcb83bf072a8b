// @ts-check
// Writes the rows of a commit. In JavaScript, because one call from wasm is cheaper than one for each row.

/** The placeholders of one row. */
const ROW = "(?, ?, ?, ?)";
const VALUES = 4;

/**
 * How many of the remaining rows go into the next statement. The platform binds at most a hundred values, and each number of rows
 * is another statement that must be prepared.
 * @param {number} rows
 */
const rowsInStatement = (rows) => [24, 8].find((count) => rows >= count) ?? rows;

/** Statements by their number of rows, shared by all objects of an isolate. @type {Map<number, string>} */
const statements = new Map();

export class Saver {
  #storage;
  #save;
  #delete;
  /** What Cloudflare bills since the object was loaded. */
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
   * Writes everything or, if it throws, nothing: a commit of several statements is a transaction.
   * @param {string} text row id, key, value and status of each row, then the ids of the rows to delete
   * @param {Uint32Array} ends where each part of the text ends
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
    const isOneStatement = rows === rowsInStatement(rows) && parts.length === rows * VALUES;
    if (isOneStatement) this.#write(this.#saveStatement(rows), parts);
    else this.#storage.transactionSync(() => this.#saveAll(parts, rows));
  }

  /** @param {string[]} parts @param {number} rows */
  #saveAll(parts, rows) {
    let at = 0;
    while (at < rows) {
      const count = rowsInStatement(rows - at);
      this.#write(this.#saveStatement(count), parts.slice(at * VALUES, (at + count) * VALUES));
      at += count;
    }
    for (const rowId of parts.slice(rows * VALUES)) this.#write(this.#delete, [rowId]);
  }

  /** @param {number} rows */
  #saveStatement(rows) {
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
