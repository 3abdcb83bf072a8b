// A Worker that uses the TypeScript client over a service binding, as docs/client.md shows. The test bundles it.
import { createClient, CurfewError } from "../../../client/index.ts";

interface Environment {
  CURFEW: Fetcher;
  CURFEW_TOKEN: string;
}

export default {
  async fetch(request: Request, env: Environment): Promise<Response> {
    const client = createClient({ fetch: env.CURFEW, token: env.CURFEW_TOKEN });
    const { name } = await request.json<{ name: string }>();
    try {
      const run = await client.start("hello", { input: { name } }, { wait_ms: 5_000 });
      const kinds: string[] = [];
      for await (const event of client.watch(run.id)) kinds.push(event.kind);
      return Response.json({ run_id: run.id, output: run.output, kinds });
    } catch (error) {
      if (!(error instanceof CurfewError)) throw error;
      return Response.json({ code: error.code, message: error.message }, { status: 502 });
    }
  },
};
