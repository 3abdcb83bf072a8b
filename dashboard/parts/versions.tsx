// What changed between two versions of a workflow.
import { useState } from "preact/hooks";
import { differences } from "../logic/json_difference.ts";
import { short } from "../logic/safe_text.ts";
import { usePolled } from "../state/poll.ts";
import { Problem, Text } from "./text.tsx";

export function Versions({ id, version, document, last }: { id: string; version: number; document: unknown; last: number }) {
  const [chosen, setOther] = useState<number | undefined>(undefined);
  // The page may show the version that it was compared with before.
  const other = chosen === undefined || chosen === version ? (version > 1 ? version - 1 : last) : chosen;
  const { data, error } = usePolled(`workflow-${id}-${other}-other`, 0, (client, signal) => client.read("workflows", id, { version: other, signal }));
  if (last === 1) return <div class="empty">There is one version only.</div>;
  const changes = data.value ? differences(data.value.document, document) : undefined;
  return (
    <div>
      <div class="filters">
        <label class="row">
          Compare version {version} with
          <select class="input" value={String(other)} onChange={(event) => setOther(Number(event.currentTarget.value))}>
            {Array.from({ length: last }, (_, index) => last - index)
              .filter((number) => number !== version)
              .map((number) => (
                <option key={number} value={String(number)}>
                  version {number}
                </option>
              ))}
          </select>
        </label>
      </div>
      {error.value && <Problem message={error.value} />}
      {changes?.length === 0 && <div class="empty">The documents are the same.</div>}
      {changes && changes.length > 0 && (
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th>Where</th>
                <th>Version {other}</th>
                <th>Version {version}</th>
              </tr>
            </thead>
            <tbody>
              {changes.map(({ path, before, after }) => (
                <tr key={path}>
                  <td class="mono">
                    <Text value={path} max={200} />
                  </td>
                  <td>{before === undefined ? <span class="muted">absent</span> : <Text value={short(before, 600)} className="mono" />}</td>
                  <td>{after === undefined ? <span class="muted">absent</span> : <Text value={short(after, 600)} className="mono" />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
