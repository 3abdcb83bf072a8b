// What was undone before the run ended, what could not be, and what its end handlers did.
import type { Run } from "../../client/index.ts";
import { tokenPath } from "../logic/routes.ts";
import { count } from "../logic/words.ts";
import { Status, Text } from "./text.tsx";

const TITLES: Record<string, string> = { completed: "All work was undone", partial: "Some work was not undone", failed: "The work was not undone" };

export function Compensation({ run }: { run: Run }) {
  const { compensation, on_end: handlers = [] } = run;
  if (!compensation && handlers.length === 0) return null;
  const isBad = compensation !== undefined && compensation.status !== "completed";
  return (
    <section class={`card ${isBad ? "trouble" : ""}`} aria-label="Compensation">
      <header>
        <h2>{compensation ? (TITLES[compensation.status] ?? `Compensation: ${compensation.status}`) : "End handlers"}</h2>
      </header>
      <ul class="body cuts">
        {compensation?.failed.map((item) => (
          <Undone key={item.token_id} run={run.id} item={item} />
        ))}
        {compensation?.done.map((item) => (
          <Undone key={item.token_id} run={run.id} item={item} isDone />
        ))}
        {compensation?.omitted !== undefined && <li>and {count(compensation.omitted, "more token")}</li>}
        {handlers.map(({ status, error }, index) => (
          <li key={index}>
            end handler {index + 1} <Status status={status} /> {error && <Text value={error.message} max={400} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

type Item = NonNullable<Run["compensation"]>["done"][number];

const Undone = ({ run, item: { node_id, token_id, error }, isDone = false }: { run: string; item: Item; isDone?: boolean }) => (
  <li>
    <Text value={node_id} max={80} />{" "}
    <a class="mono" href={tokenPath(run, token_id) + location.search}>
      {token_id}
    </a>{" "}
    {isDone ? "was undone" : "was not undone"}
    {error && (
      <>
        {": "}
        <Text value={error.message} max={400} />
      </>
    )}
  </li>
);
