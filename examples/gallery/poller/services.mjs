// A service that makes exports: a job is ready when it has been asked for often enough.
import { startService } from "../service.mjs";

/** @param {{readyAfter?: number}} [options] */
export async function startExports({ readyAfter = 3 } = {}) {
  let asked = 0;
  return startService({
    "POST /jobs": ({ day }) => ({ status: 201, body: { id: `export-${day}` } }),
    "GET /jobs/*": () => {
      asked += 1;
      return { body: { ready: asked >= readyAfter, count: asked >= readyAfter ? 4_711 : 0 } };
    },
    "POST /loads": () => ({ status: 202 }),
    "POST /alarms": () => ({ status: 202 }),
  });
}
