// The Worker of Curfew, for a Worker that exports it: `export { default, Executor, RunObject, BreakerObject } from "curfew/worker";`.
type EntryPoint = new (ctx: any, env: any) => any;

/** API, queues and cron; its methods for other Workers are those of `CurfewBinding` in `curfew/client`. */
declare const Curfew: EntryPoint;
export default Curfew;
/** Runs tasks. It has no route. */
export declare const Executor: EntryPoint;
/** One run. */
export declare const RunObject: EntryPoint;
/** One circuit breaker. */
export declare const BreakerObject: EntryPoint;
