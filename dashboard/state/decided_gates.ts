// Gates that were decided in this page. The list of gates is about a second behind: they are gone at once, and no second decision is sent.
import { signal } from "@preact/signals";
import type { Gate } from "../../client/index.ts";
import { gateKey } from "../logic/gates.ts";

const decided = signal<ReadonlySet<string>>(new Set());

export const markDecided = (gate: Gate): void => {
  decided.value = new Set([...decided.peek(), gateKey(gate)]);
};

export const undecided = (gates: readonly Gate[]): Gate[] => gates.filter((gate) => !decided.value.has(gateKey(gate)));
