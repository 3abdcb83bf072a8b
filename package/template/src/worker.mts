// The Worker that wrangler.toml deploys: Curfew as it comes. Entry points of your own can stand beside it, for actions of kind `service_call`.
export { default, Api, BreakerObject, Executor, RunObject } from "curfew/worker";
