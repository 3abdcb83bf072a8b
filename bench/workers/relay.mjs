// @ts-check
// Stands between the floor's object and the internet, where Curfew has its executor: both call a Worker that calls the peer.
export default {
  /** @param {Request} request */
  fetch: (request) => fetch(request),
};
