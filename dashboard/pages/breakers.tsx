// Circuit breakers: which dependencies are not called at the moment, and until when.
import { useEffect } from "preact/hooks";
import { timeLeft } from "../logic/words.ts";
import { Problem, Status, Text, When } from "../parts/text.tsx";
import { now } from "../state/clock.ts";
import { attempt } from "../state/notices.ts";
import { usePolled } from "../state/poll.ts";
import { client, may } from "../state/session.ts";

const EVERY_MS = 3_000;

export function BreakersPage() {
  const { data, error, refresh } = usePolled("breakers", EVERY_MS, (client, signal) => client.breakers({ limit: 1_000, signal }));
  useEffect(() => {
    document.title = "Breakers - Curfew";
  }, []);
  const reset = async (key: string) => {
    if (await attempt(() => client.value.resetBreaker(key), `The breaker ${key} is closed.`)) refresh();
  };
  const items = data.value?.items ?? [];
  return (
    <>
      <div class="page-head">
        <h1>Breakers</h1>
      </div>
      {error.value && <Problem message={error.value} />}
      <section class="card" aria-label="Breakers">
        <div class="table-scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>Breaker</th>
                <th>State</th>
                <th class="right">Failures in a row</th>
                <th>Opened</th>
                <th>Next trial</th>
                <th>Changed</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr key={item.key}>
                  <td class="main mono">
                    <Text value={item.key} max={140} />
                  </td>
                  <td data-label="State">
                    <Status status={item.state} />
                  </td>
                  <td class="right number" data-label="Failures in a row">{item.failures}</td>
                  <td data-label="Opened">{item.opened_at !== null && <When at={item.opened_at} />}</td>
                  <td class="number nowrap" data-label="Next trial">{item.state !== "closed" && item.trial_at !== null ? (item.trial_at > now.value ? timeLeft(item.trial_at, now.value) : "with the next call") : ""}</td>
                  <td data-label="Changed">
                    <When at={item.updated_at} />
                  </td>
                  <td class="right">
                    {may("admin") && item.state !== "closed" && (
                      <button type="button" class="button small" onClick={() => reset(item.key)}>
                        Reset
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {items.length === 0 && <div class="empty">{data.value ? "No breaker has counted a failure." : "Loading …"}</div>}
      </section>
    </>
  );
}
