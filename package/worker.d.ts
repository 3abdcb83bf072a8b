// The Worker of Curfew, for a Worker that exports it: `export { default, Api, Executor, RunObject, BreakerObject } from "curfew/worker";`.
type EntryPoint = new (ctx: any, env: any) => any;

/** API, queues and cron. */
declare const Curfew: EntryPoint;
export default Curfew;
/** What other Workers bind: `CurfewBinding` in `curfew/client` has its methods. */
export declare const Api: EntryPoint;
/** Runs tasks. It has no route. */
export declare const Executor: EntryPoint;
/** One run. */
export declare const RunObject: EntryPoint;
/** One circuit breaker. */
export declare const BreakerObject: EntryPoint;
