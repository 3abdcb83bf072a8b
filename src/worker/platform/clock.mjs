// @ts-check
/**
 * All deadlines of one invocation behind one timer. Most calls end long before their deadline, and setting and clearing a timer
 * for each costs more than reading the response.
 */
export class Clock {
  /** Callbacks and the moment each is due. @type {Map<() => void, number>} */
  #deadlines = new Map();
  /** @type {ReturnType<typeof setTimeout> | null} */
  #timer = null;
  #firesAt = Number.POSITIVE_INFINITY;

  /** @param {number} millis @param {() => void} onDeadline called once, unless it is cleared before */
  set(millis, onDeadline) {
    const at = Date.now() + millis;
    this.#deadlines.set(onDeadline, at);
    if (at < this.#firesAt) this.#setTimer(at);
  }

  /** The timer stays set: firing once for nothing costs less than clearing it. @param {() => void} onDeadline */
  clear(onDeadline) {
    this.#deadlines.delete(onDeadline);
  }

  /** Clears everything. A timer would keep the invocation alive. */
  stop() {
    this.#deadlines.clear();
    clearTimeout(this.#timer);
  }

  /** @param {number} at */
  #setTimer(at) {
    clearTimeout(this.#timer);
    this.#firesAt = at;
    // At least 1 ms, because a timer may fire a little early.
    this.#timer = setTimeout(() => this.#fire(), Math.max(at - Date.now(), 1));
  }

  #fire() {
    const now = Date.now();
    this.#firesAt = Number.POSITIVE_INFINITY;
    for (const [onDeadline, at] of this.#deadlines) {
      if (at > now) continue;
      this.#deadlines.delete(onDeadline);
      onDeadline();
    }
    const next = Math.min(...this.#deadlines.values());
    if (Number.isFinite(next)) this.#setTimer(next);
  }
}
