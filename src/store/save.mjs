// @ts-check
// Writes the rows of a commit, on this side of the wasm: one crossing for all.

/** The values of a token in its statement. */
const TOKEN = "(?, ?, ?)";
/** So many at once if there are as many: the platform binds a hundred values. It takes half as long. */
const TOGETHER = 32;

export class Saver {
  #sql;
  #statements;
  /** What Cloudflare would bill, since the object came into memory. */
  rowsWritten = 0;
  rowsRead = 0;

  /**
   * @param {SqlStorage} sql
   * @param {string} saveRun
   * @param {string} saveToken
   * @param {string} deleteRun
   */
  constructor(sql, saveRun, saveToken, deleteRun) {
    this.#sql = sql;
    this.#statements = { saveRun, saveToken, deleteRun };
  }

  /**
   * All or, if it throws, nothing that lasts: the object is then reset.
   * @param {string[]} run key, value; key, value
   * @param {string[]} tokens id, status, row
   * @param {string[]} deleted keys
   */
  save(run, tokens, deleted) {
    const { saveRun, saveToken, deleteRun } = this.#statements;
    for (let at = 0; at < run.length; at += 2) this.#write(saveRun, run[at], run[at + 1]);
    for (const key of deleted) this.#write(deleteRun, key);
    const together = TOGETHER * 3;
    let at = 0;
    for (; at + together <= tokens.length; at += together) {
      this.#write(saveToken.replace(TOKEN, Array(TOGETHER).fill(TOKEN).join(", ")), ...tokens.slice(at, at + together));
    }
    for (; at < tokens.length; at += 3) this.#write(saveToken, ...tokens.slice(at, at + 3));
  }

  /** @param {string} statement @param {(string | undefined)[]} values */
  #write(statement, ...values) {
    const cursor = this.#sql.exec(statement, ...values);
    this.rowsWritten += cursor.rowsWritten;
    this.rowsRead += cursor.rowsRead;
  }
}
