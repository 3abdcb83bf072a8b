// Every command, in the order of the help. A new one is a line here, its file in commands/, and its row in docs/cli.md.
import type { Command } from "./command.ts";
import { analyze } from "./commands/analyze.ts";
import { breakers } from "./commands/breakers.ts";
import { completions, makeComplete } from "./commands/completions.ts";
import { cancel, extend, pause, restart, resume, retry } from "./commands/controls.ts";
import { decide, inbox } from "./commands/gates.ts";
import { deploy } from "./commands/deploy.ts";
import { dev } from "./commands/dev.ts";
import { init } from "./commands/init.ts";
import { exportRun } from "./commands/export.ts";
import { makeHelp, version } from "./commands/help.ts";
import { publish, signal } from "./commands/messages.ts";
import { put } from "./commands/put.ts";
import { run, runs } from "./commands/runs.ts";
import { simulate } from "./commands/simulate.ts";
import { start } from "./commands/start.ts";
import { watch } from "./commands/watch.ts";
import { workflow, workflows } from "./commands/workflows.ts";

export const COMMANDS: readonly Command[] = [
  dev,
  init,
  deploy,
  analyze,
  simulate,
  put,
  workflows,
  workflow,
  start,
  watch,
  runs,
  run,
  inbox,
  decide,
  extend,
  cancel,
  pause,
  resume,
  retry,
  restart,
  signal,
  publish,
  breakers,
  exportRun,
  completions,
  makeHelp(() => COMMANDS),
  version,
  makeComplete(() => COMMANDS),
];
