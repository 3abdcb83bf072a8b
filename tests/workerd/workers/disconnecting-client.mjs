// @ts-check
// Sends an executor a single order that hangs, disconnects while it is running, and returns how many orders hung before, meanwhile
// and after. A Worker, because miniflare's entry does not pass a client's disconnect on.
export default {
  /** @param {Request} _request @param {{ EXECUTOR: Fetcher }} env */
  async fetch(_request, { EXECUTOR }) {
    /** @param {string} body @param {AbortSignal | null} [signal] */
    const order = (body, signal = null) => EXECUTOR.fetch("http://executor/execute", { method: "POST", body, signal });
    const hanging = async () => Number(await (await order("hanging")).text());
    const before = await hanging();
    const abort = new AbortController();
    const aborted = order("hang alone", abort.signal).catch(() => {});
    let meanwhile = before;
    while (meanwhile === before) meanwhile = await hanging();
    abort.abort();
    await aborted;
    let after = meanwhile;
    for (let look = 0; look < 1_000 && after === meanwhile; look += 1) after = await hanging();
    return Response.json([before, meanwhile, after]);
  },
};
