// The names in a workflow as types: a test that misspells a node does not compile.
import type { StoredId } from "../client/index.ts";

/** What the kit reads of the type of a document. */
export interface Named {
  id: string;
  nodes: readonly { id: string }[];
}

/** A document that was read from a file may be `any`: then any name will do. */
type IsAny<Type> = 0 extends 1 & Type ? true : false;
type ElementOf<List> = NonNullable<List> extends readonly (infer Element)[] ? Element : never;
type IdOf<Element> = Element extends { id: infer Id extends string } ? Id : never;

/** The ids of the nodes of a workflow. */
export type NodeOf<Workflow> = IsAny<Workflow> extends true ? string : Workflow extends { nodes: infer Nodes } ? IdOf<ElementOf<Nodes>> : never;

// These are conditional, because the compiler then shows the names in its errors, and not the name of the type.
/** Where calls are made: nodes, their compensations, and end handlers. */
export type PlaceOf<Workflow> = NodeOf<Workflow> extends infer Node extends string ? Node | `${Node}~compensate` | `on_end~${number}` : never;

/** The ids of the actions in a workflow, and of those that are stored by themselves. */
export type ActionOf<Workflow> = IsAny<Workflow> extends true ? string : (Workflow extends { actions?: infer Actions } ? IdOf<ElementOf<Actions>> : never) | StoredId;

/** The signals that nodes wait for. */
type SignalOf<Workflow> = Workflow extends { nodes: infer Nodes } ? Waited<ElementOf<Nodes>> : never;
type Waited<Node> = Node extends { wait?: infer Wait } ? (NonNullable<Wait> extends { signal?: infer Signal } ? Extract<Signal, string> : never) : never;

/** What a run may wait for. */
export type WaitOf<Workflow> = IsAny<Workflow> extends true ? string : NodeOf<Workflow> extends infer Node extends string ? Node | "timeout" | SignalOf<Workflow> : never;

declare const tested: unique symbol;
/** Carries the type of the workflow, for the compiler only. */
export interface Tested<Workflow> {
  readonly [tested]?: Workflow;
}
/** The workflow of a run. Of anything else, any name will do. */
export type WorkflowOf<Run> = IsAny<Run> extends true ? any : Run extends Tested<infer Workflow> ? (unknown extends Workflow ? any : Workflow) : any;

/** Gates: of nodes, and of the run's limit. Any node may have one, because a failure can be escalated. */
export type GateOf<Workflow> = NodeOf<Workflow> extends infer Node extends string ? Node | "timeout" : never;

type GateAt<Workflow, Gate> = Workflow extends { nodes: infer Nodes } ? Extract<ElementOf<Nodes>, { id: Gate }> : never;
type Listed<Node> = Node extends { gate?: infer Gate } ? (NonNullable<Gate> extends { choices?: infer Choices } ? ElementOf<Choices> : never) : never;

/** The choices that a gate lists, or any text. */
export type ChoiceOf<Workflow, Gate> = IsAny<Workflow> extends true ? string : [Listed<GateAt<Workflow, Gate>>] extends [never] ? string : Extract<Listed<GateAt<Workflow, Gate>>, string>;
