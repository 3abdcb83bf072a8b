// The path of a run as lines of text: a bar for each token, with its duration and its end.

const COLUMNS = 40;

/** @param {any} token */
function label({ node_id, compensation, on_end, branch }) {
  if (compensation) return `undo ${node_id}`;
  if (on_end) return "on_end";
  const item = typeof branch?.item === "string" ? branch.item : branch && `${branch.index + 1} of ${branch.total}`;
  return branch ? `${node_id}, ${item}` : node_id;
}

/** @param {number} ms */
export const duration = (ms) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`);

/**
 * @param {any} run
 * @param {any[]} tokens
 * @returns {string[]}
 */
export function timeline(run, tokens) {
  const endedAt = run.ended_at ?? Math.max(...tokens.map(({ ended_at, created_at }) => ended_at ?? created_at));
  const span = Math.max(endedAt - run.started_at, 1);
  const column = (/** @type {number} */ at) => Math.min(Math.floor(((at - run.started_at) / span) * COLUMNS), COLUMNS - 1);
  const width = Math.max(...tokens.map((token) => label(token).length));
  return tokens.map((token) => {
    const until = token.ended_at ?? endedAt;
    const [from, to] = [column(token.created_at), column(until)];
    const bar = `${" ".repeat(from)}${"█".repeat(to - from + 1)}`.padEnd(COLUMNS);
    const why = token.error?.code ?? token.reason ?? "";
    const took = duration(until - token.created_at).padStart(7);
    return `${label(token).padEnd(width)}  ${bar}  ${took}  ${token.status}${why && `, ${why}`}`;
  });
}
