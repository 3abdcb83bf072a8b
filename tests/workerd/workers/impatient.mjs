// @ts-check
// Asks an executor for a single order that is never answered, goes away once the order is at work, and says how many orders hung
// before, meanwhile and after. Nobody outside could: the local entry goes on with what its caller has left.
export default {
  /** @param {Request} _request @param {{ EXECUTOR: Fetcher }} env */
  async fetch(_request, { EXECUTOR }) {
    /** @param {string} body @param {AbortSignal | null} [signal] */
    const order = (body, signal = null) => EXECUTOR.fetch("http://executor/execute", { method: "POST", body, signal });
    const hanging = async () => Number(await (await order("hanging")).text());
    const before = await hanging();
    const asker = new AbortController();
    const asked = order("hang alone", asker.signal).catch(() => {});
    let meanwhile = before;
    while (meanwhile === before) meanwhile = await hanging();
    asker.abort();
    await asked;
    let after = meanwhile;
    for (let look = 0; look < 1_000 && after === meanwhile; look += 1) after = await hanging();
    return Response.json([before, meanwhile, after]);
  },
};
