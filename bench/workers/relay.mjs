// @ts-check
// The counterpart of Curfew's executor: the floor's object calls this Worker, which calls the peer.
export default {
  /** @param {Request} request */
  fetch: (request) => fetch(request),
};
