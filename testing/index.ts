// Tests of workflows in virtual time, for `node:test`, Vitest and any other test runner. docs/testing.md describes it.
export { curfewTest, type Kit } from "./kit.ts";
export { UnknownName } from "./known_names.ts";
export { expectRun, matchers, type RunMatchers } from "./matchers.ts";
export { SeedFailure, type SeedOptions, type SeedSummary } from "./seeds.ts";
export { SeenRun, type DecideOptions, type SeedRun, type TestRun } from "./run.ts";
export { EngineError } from "../engine/engine.mjs";
export type { Duration } from "./durations.ts";
export type { Call, Decision, FailureClass, Faults, KitOptions, Mock, OpenGate, Signal, StartOptions, View, Wait } from "./types.ts";
