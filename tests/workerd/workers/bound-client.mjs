// A Worker that is bound to the coordinator and sends what it is asked for: {url, method?, headers?, body?}.
export default {
  /** @param {Request} request @param {{ CURFEW: Fetcher }} env */
  async fetch(request, env) {
    const { url, ...init } = await request.json();
    return env.CURFEW.fetch(url, init);
  },
};
