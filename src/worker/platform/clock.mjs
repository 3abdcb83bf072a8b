// @ts-check
/**
 * All deadlines of one invocation behind one timer. Most calls end long before theirs: a timer of its own, set and cleared
 * again, costs a call more than its answer does.
 */
export class Clock {
  /** What is to be done, and when. @type {Map<() => void, number>} */
  #due = new Map();
  /** @type {ReturnType<typeof setTimeout> | null} */
  #timer = null;
  #ringsAt = Number.POSITIVE_INFINITY;

  /** @param {number} millis @param {() => void} late called once, unless it is taken back */
  set(millis, late) {
    const at = Date.now() + millis;
    this.#due.set(late, at);
    if (at < this.#ringsAt) this.#ringAt(at);
  }

  /** The timer stays: it costs less to be woken once for nothing. @param {() => void} late */
  clear(late) {
    this.#due.delete(late);
  }

  /** Nothing is due any more: a timer would keep the invocation alive. */
  stop() {
    this.#due.clear();
    clearTimeout(this.#timer);
  }

  /** @param {number} at */
  #ringAt(at) {
    clearTimeout(this.#timer);
    this.#ringsAt = at;
    // What is over is over now, and a timer may come a little early.
    this.#timer = setTimeout(() => this.#ring(), Math.max(at - Date.now(), 1));
  }

  #ring() {
    const now = Date.now();
    this.#ringsAt = Number.POSITIVE_INFINITY;
    for (const [late, at] of this.#due) {
      if (at > now) continue;
      this.#due.delete(late);
      late();
    }
    const next = Math.min(...this.#due.values());
    if (Number.isFinite(next)) this.#ringAt(next);
  }
}
