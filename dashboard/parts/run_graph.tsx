// The graph of a run's workflow with the states of its tokens.
import { useMemo } from "preact/hooks";
import { graphOf, nodesNearDeadline, nodeStates, takenEdges } from "../logic/graph.ts";
import { tokenPath } from "../logic/routes.ts";
import { navigate, route } from "../state/location.ts";
import type { RunStore } from "../state/run_store.ts";
import { GraphView } from "./graph.tsx";

export function RunGraph({ store }: { store: RunStore }) {
  const document = store.document.value;
  const tokens = store.tokens.value;
  const graph = useMemo(() => graphOf(document), [document]);
  const current = route.value.page === "run" ? route.value.token : undefined;
  const choose = (node: string): void => {
    const latest = tokens.filter(({ node_id }) => node_id === node).at(-1);
    if (latest) navigate(tokenPath(store.id, latest.id) + location.search);
  };
  return (
    <GraphView
      graph={graph}
      states={nodeStates(tokens)}
      taken={takenEdges(tokens)}
      near={nodesNearDeadline(store.events.value, tokens)}
      chosen={tokens.find(({ id }) => id === current)?.node_id}
      onChoose={choose}
    />
  );
}
