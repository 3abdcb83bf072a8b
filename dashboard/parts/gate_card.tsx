// A question to a person, with its choices. A decision is sent after a moment in which it can be taken back.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Gate } from "../../client/index.ts";
import { promptOf } from "../logic/gates.ts";
import { runPath } from "../logic/routes.ts";
import { visible } from "../logic/safe_text.ts";
import { duration, parseDuration, timeLeft, words } from "../logic/words.ts";
import { now } from "../state/clock.ts";
import { attempt, dismiss, notify } from "../state/notices.ts";
import { client, may } from "../state/session.ts";
import { takesKeys } from "./keys.ts";
import { SchemaForm, type FormState } from "./schema_form.tsx";
import { Json, Status, Text, When } from "./text.tsx";

/** Of an id of a run: it is not cut, a link has no room for a button that shows the rest. */
const RUN_ID = 140;
/** How long a decision can be taken back. */
const UNDO_MS = 1_000;

const TITLES: Record<string, string> = { node: "A decision is needed", workflow_timeout: "The limit of the run passed", escalation: "A failure was escalated" };

/** Then it has a scroll bar, which keys have to reach. */
const isLong = (prompt: string): boolean => prompt.length > 400 || prompt.split("\n").length > 8;

const keepOpen = (event: Event): void => event.preventDefault();

interface GateCardProps {
  gate: Gate;
  onDecided: () => void;
  /** In the inbox the card names its run. */
  showsRun?: boolean;
  /** Number keys choose. */
  isCurrent: boolean;
  /** Whether keys count at this moment. */
  mayUseKeys: () => boolean;
  /** What helps to decide, between the prompt and the choices. */
  children?: ComponentChildren;
}

export function GateCard({ gate, onDecided, showsRun = false, isCurrent, mayUseKeys, children }: GateCardProps) {
  const [comment, setComment] = useState("");
  const [form, setForm] = useState<FormState>({ value: undefined, problems: [] });
  const [extendBy, setExtendBy] = useState("10m");
  const [pending, setPending] = useState<string | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isTimeout = gate.kind === "workflow_timeout";
  const mayDecide = may("decide") && gate.status === "open";
  const byMs = parseDuration(extendBy);
  const prompt = promptOf(gate);

  const inputFor = (choice: string): unknown => (isTimeout && choice === "extend" ? { by_ms: byMs } : gate.input_schema !== null ? form.value : undefined);
  const problemOf = (choice: string): string | undefined => (isTimeout && choice === "extend" ? (byMs === undefined ? "write a duration" : undefined) : form.problems[0]);
  const decide = (choice: string): void => {
    if (pending !== undefined || !mayDecide) return;
    const problem = problemOf(choice);
    if (problem !== undefined) return void notify("bad", `Not decided: ${problem}`);
    setPending(choice);
    const input = inputFor(choice);
    // Who closes the tab within that second is asked: the decision would not be sent.
    addEventListener("beforeunload", keepOpen);
    const undo = (): void => {
      clearTimeout(timer.current);
      removeEventListener("beforeunload", keepOpen);
      dismiss(notice);
      setPending(undefined);
    };
    const notice = notify("neutral", `${words(choice)} is sent to ${gate.run_id} in a second.`, { undo, shownMs: UNDO_MS });
    timer.current = setTimeout(async () => {
      const done = await attempt(() => client.value.decide(gate.run_id, gate.id, { choice, ...(input !== undefined && { input }), ...(comment && { comment }) }), `Decided: ${words(choice)}.`);
      removeEventListener("beforeunload", keepOpen);
      setPending(undefined);
      if (done) onDecided();
    }, UNDO_MS);
  };

  // Before the keys are seen at the choices: one that is pressed at once counts.
  useLayoutEffect(() => {
    if (!isCurrent) return;
    const onKey = (event: KeyboardEvent): void => {
      if (!takesKeys(event) || !mayUseKeys()) return;
      const choice = /^[1-9]$/.test(event.key) ? gate.choices[Number(event.key) - 1] : undefined;
      if (choice !== undefined) decide(choice);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });

  return (
    <section class="card attention gate" aria-label={TITLES[gate.kind] ?? words(gate.kind)}>
      <header>
        <h2>{TITLES[gate.kind] ?? words(gate.kind)}</h2>
        {gate.node_id && (
          <span class="muted small">
            at <Text value={gate.node_id} max={60} />
          </span>
        )}
        {showsRun && (
          <a class="mono" href={runPath(gate.run_id)}>
            <Text value={gate.run_id} max={RUN_ID} />
          </a>
        )}
        <span class="grow" />
        <span class="muted small">
          opened <When at={gate.opened_at} />
        </span>
        {gate.timeout_at !== null && <span class="toned tone-late small">to decide: {timeLeft(gate.timeout_at, now.value)}</span>}
        {gate.status !== "open" && <Status status={gate.status} />}
      </header>
      <div class="body stack">
        <div class="prompt" tabIndex={isLong(prompt.text) ? 0 : undefined}>
          <Text value={prompt.text} />
        </div>
        {prompt.more !== undefined && (
          <details>
            <summary class="small">{gate.kind === "escalation" ? "The failure" : "The rest of the prompt"}</summary>
            <Json value={prompt.more} label="The rest of the prompt" />
          </details>
        )}
        {children}
        {gate.truncated && <p class="muted small">Something was cut here; the run has all of it.</p>}
        {mayDecide && gate.input_schema !== null && !isTimeout && <SchemaForm schema={gate.input_schema} label="Input" onChange={setForm} />}
        {mayDecide && isTimeout && (
          <label class="row">
            Extend by
            <input class="input extend-by" size={8} value={extendBy} aria-invalid={byMs === undefined} onInput={(event) => setExtendBy(event.currentTarget.value)} />
            <span class="muted small">{byMs === undefined ? "for example 30s, 10m or 1h30m" : `the run goes on for ${duration(byMs)}`}</span>
          </label>
        )}
        {mayDecide && (
          <>
            <label class="field">
              <span class="label">Comment</span>
              <input class="input" value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
            </label>
            <div class="choices">
              {gate.choices.map((choice, index) => (
                <button key={choice} type="button" class={`button ${index === 0 ? "primary" : ""}`} disabled={pending !== undefined} onClick={() => decide(choice)}>
                  {visible(words(choice))} {isCurrent && index < 9 && <kbd>{index + 1}</kbd>}
                </button>
              ))}
            </div>
          </>
        )}
      </div>
    </section>
  );
}
