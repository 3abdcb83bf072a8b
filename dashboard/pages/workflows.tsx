// The workflows of the catalogue.
import { useEffect, useState } from "preact/hooks";
import { withQuery, workflowPath } from "../logic/routes.ts";
import { StartDialog } from "../parts/start_dialog.tsx";
import { Problem, Text, When } from "../parts/text.tsx";
import { usePolled } from "../state/poll.ts";
import { may } from "../state/session.ts";

const EVERY_MS = 10_000;

export function WorkflowsPage() {
  const [text, setText] = useState("");
  const [starting, setStarting] = useState<string | undefined>(undefined);
  const { data, error } = usePolled("workflows", EVERY_MS, async (client, signal) => {
    const items = [];
    for await (const item of client.pages((page) => client.list("workflows", { limit: 1_000, signal, ...page }))) items.push(item);
    return items;
  });
  useEffect(() => {
    document.title = "Workflows - Curfew";
  }, []);
  const shown = (data.value ?? []).filter(({ id }) => id.toLowerCase().includes(text.trim().toLowerCase()));
  return (
    <>
      <div class="page-head">
        <h1>Workflows</h1>
        <label class="row">
          <span class="for-readers">Find a workflow</span>
          <input class="input" placeholder="Find" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </div>
      {error.value && <Problem message={error.value} />}
      <section class="card" aria-label="Workflows">
        <div class="table-scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>Workflow</th>
                <th class="right">Version</th>
                <th>Stored</th>
                <th>By</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {shown.map((item) => (
                <tr key={item.id}>
                  <td class="main">
                    <a href={workflowPath(item.id)}>
                      <Text value={item.id} />
                    </a>
                  </td>
                  <td class="right number" data-label="Version">{item.version}</td>
                  <td data-label="Stored">
                    <When at={item.created_at} />
                  </td>
                  <td data-label="By">{item.created_by && <Text value={item.created_by} max={80} />}</td>
                  <td class="right nowrap">
                    <a href={withQuery("/runs", { workflow: item.id })}>runs</a>
                    {" · "}
                    {may("start") && (
                      <button type="button" class="link-button" onClick={() => setStarting(item.id)}>
                        start
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {shown.length === 0 && <div class="empty">{data.value ? (text ? "No workflow has this in its id." : "No workflow is stored yet.") : "Loading …"}</div>}
      </section>
      {starting !== undefined && <StartDialog workflow={starting} onClose={() => setStarting(undefined)} />}
    </>
  );
}
