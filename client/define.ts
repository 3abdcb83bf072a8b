// Workflows in TypeScript: the compiler checks the names that a document refers to, and the result is the same JSON.
import type { components } from "./documents.ts";

type Documents = components["schemas"];

export type WorkflowDocument = Documents["workflow"];
export type TaskDocument = Documents["task"];
export type ActionDocument = Documents["action"];

declare const isStored: unique symbol;
declare const decision: unique symbol;

/** The id of a task or an action that is not part of the document. */
export type StoredId = string & { readonly [isStored]: true };

/** The id of a task or an action that is stored by itself, so that the compiler cannot look for it in the document. */
export const stored = (id: string): StoredId => id as StoredId;

/**
 * The condition that the gate `node` was decided with `choice`: `state.ask.choice == 'approve'`. In `defineWorkflow` the compiler
 * compares it with the gates and with their `choices`. In the same text written by hand it compares the choice only: `state` also
 * has what mappings write.
 */
export function choice<const Node extends string, const Choice extends string>(node: Node, choice: Choice): ChoiceCondition<Node, Choice> {
  const path = /^[a-z_]\w*$/.test(node) ? `state.${node}` : `state['${node}']`;
  const text = /['\\\p{Cc}]/u.test(choice) ? JSON.stringify(choice) : `'${choice}'`;
  return `${path}.choice == ${text}` as ChoiceCondition<Node, Choice>;
}

type NeedsBrackets = `${string}-${string}` | `${number}${string}`;
export type ChoiceCondition<Node extends string, Choice extends string> = (Node extends NeedsBrackets
  ? `state['${Node}'].choice == '${Choice}'`
  : `state.${Node}.choice == '${Choice}'`) & Decision<Node, Choice>;

/** What a condition of `choice` was made of, for the compiler only. */
interface Decision<Node extends string, Choice extends string> {
  readonly [decision]: readonly [Node, Choice];
}

/**
 * Returns `workflow` as it is. The compiler refuses an unknown field, the id of a node, a task, an action or a sibling group that the
 * document does not have, an id that comes twice, and a node of two kinds. Ids of tasks and actions that are stored by themselves are written as `stored("id")`.
 */
export function defineWorkflow<
  const Id extends string,
  const Nodes extends readonly unknown[],
  const Conditions extends readonly unknown[] = [],
  const TransitionIds extends readonly unknown[] = [],
  const TaskId extends string = never,
  const ActionId extends string = never,
  const Group extends string = never,
  const TransitionId extends string = never,
  const Limit extends string | null = never,
  const GateLimit extends string = never,
>(
  workflow: Replace<
    WorkflowDocument,
    {
      id: Id;
      timeout?: Limit & NoInfer<CheckedTime<Limit>>;
      gate?: Replace<NonNullable<WorkflowDocument["gate"]>, { timeout?: GateLimit & NoInfer<CheckedTime<GateLimit>> }> | null;
      nodes: WithNodes<Nodes, Node<NoInfer<TaskId>, NoInfer<ActionId>>> & NoInfer<CheckedNodes<Nodes>>;
      transitions?: readonly Transition<NoInfer<IdsOf<Nodes>>, TransitionId, Group>[] &
        WithConditions<Conditions, Nodes, Transition<NoInfer<IdsOf<Nodes>>, NoInfer<TransitionId>, NoInfer<Group>>> &
        WithTransitionIds<TransitionIds, Transition<NoInfer<IdsOf<Nodes>>, NoInfer<TransitionId>, NoInfer<Group>>> &
        NoInfer<UniqueIds<TransitionIds>>;
      initial_node_id?: NoInfer<IdsOf<Nodes>>;
      tasks?: readonly Task<TaskId, NoInfer<ActionId>>[];
      actions?: readonly (ActionDocument & { id: ActionId })[];
      on_end?: readonly Work<NonNullable<WorkflowDocument["on_end"]>[number], NoInfer<TaskId>, NoInfer<ActionId>>[];
    }
  >,
): DefinedWorkflow<Id, KnownNodes<Nodes>, ActionId> {
  return workflow as unknown as DefinedWorkflow<Id, KnownNodes<Nodes>, ActionId>;
}

/** A workflow whose ids, choices and signals are known to the compiler: `curfew/testing` checks names with them. */
export type DefinedWorkflow<Id extends string, Nodes extends readonly unknown[], ActionId extends string> = WorkflowDocument & {
  id: Id;
  nodes: Nodes;
  actions?: readonly { id: ActionId }[];
};

/** What tests know of nodes: the ids, the choices of gates, and the signals that are waited for. */
type KnownNodes<Nodes extends readonly unknown[]> = {
  [Index in keyof Nodes]: (Nodes[Index] extends { id: infer Id extends string } ? { id: Id } : { id: string }) &
    (Nodes[Index] extends { gate: { choices: infer Choices } } ? { gate: { choices: Choices } } : unknown) &
    (Nodes[Index] extends { wait: { signal: infer Signal } } ? { wait: { signal: Signal } } : unknown);
};

type Replace<Whole, Parts> = Omit<Whole, keyof Parts> & Parts;

/** What a node, a compensation or an end handler runs. */
type Work<Whole, TaskId extends string, ActionId extends string> = Replace<Whole, { task_id?: TaskId | StoredId; action_id?: ActionId | StoredId }>;

/** Where a mapping of a node, or the merge of a join, may write to. */
type Target = `state.${string}` | `output.${string}` | "_branch.output" | `_branch.output.${string}`;

type Node<TaskId extends string, ActionId extends string> = Replace<
  Work<Documents["node"], TaskId, ActionId>,
  { output_mapping?: { [target in Target]?: unknown }; compensate?: Work<Documents["compensate"], TaskId, ActionId> }
>;

type Task<TaskId extends string, ActionId extends string> = Replace<
  TaskDocument,
  { id: TaskId; steps: readonly Replace<Documents["step"], { action_id?: ActionId | StoredId }>[] }
>;

type Merge = NonNullable<Documents["synchronization"]["merge"]>;

type Transition<NodeId, TransitionId extends string, Group extends string> = Replace<
  Documents["transition"],
  {
    id?: TransitionId;
    from_node_id: NodeId;
    to_node_id: NodeId;
    condition?: string;
    sibling_group?: Group;
    // A transition that fans out makes a group with its own id.
    synchronization?: Replace<Documents["synchronization"], { sibling_group: NoInfer<Group | TransitionId>; merge?: Replace<Merge, { target: Target }> }>;
  }
>;

// Nodes, conditions and ids of transitions are collected as lists, in their order: one is compared with the others.
type WithNodes<Nodes extends readonly unknown[], Node> = { [Index in keyof Nodes]: Node & Inferred<Nodes[Index]> };
type WithConditions<Conditions extends readonly unknown[], Nodes extends readonly unknown[], Transition> = {
  [Index in keyof Conditions]: Transition & { condition?: Conditions[Index] & NoInfer<Checked<Conditions[Index], Nodes>> };
};
type WithTransitionIds<Ids extends readonly unknown[], Transition> = { [Index in keyof Ids]: Transition & { id?: Inferred<Ids[Index]> } };

/** `Type` is inferred from what is written, and refuses nothing: it is `unknown` then. So `Node` refuses unknown fields. */
type Inferred<Type> = [Type] extends [never] ? Type : unknown;

/** A type that nothing has: the compiler shows the problem in its error. */
interface Refused<Problem> {
  problem: Problem;
}

type IdOf<Node> = Node extends { id: infer Id extends string } ? Id : never;
type IdsOf<Nodes extends readonly unknown[]> = IdOf<Nodes[number]>;

type Kind = "task_id" | "action_id" | "workflow_id" | "gate" | "wait";
/** The kinds that a node surely has. */
type KindsOf<Node> = { [Field in Kind & keyof Node]: undefined extends Node[Field] ? never : Node[Field] extends null ? never : Field }[Kind & keyof Node];
type IsUnion<Type, Each = Type> = [Type] extends [never] ? false : Each extends unknown ? ([Type] extends [Each] ? false : true) : never;

/** Refuses a text that ends with no unit, such as "10d". A text that is not known to the compiler may be anything. */
type CheckedTime<Time> = Time extends `${string}${"s" | "m" | "h"}` | `\${${string}` | "adaptive" ? Time : Time extends string ? (string extends Time ? Time : Refused<NoTime>) : Time;
type NoTime = "a duration is a number with ms, s, m or h, such as 90s or 1h30m";
// Without a problem it is `unknown`: to the compiler an object type without fields is one that refuses every field of a literal.
type CheckedTimes<Part> = [WrongTimes<Part>] extends [never] ? unknown : { [Field in WrongTimes<Part>]: Refused<NoTime> };
type WrongTimes<Part> = { [Field in keyof Part & ("timeout" | "sleep")]-?: CheckedTime<Part[Field]> extends Refused<NoTime> ? Field : never }[keyof Part & ("timeout" | "sleep")];
type Inside<Node, Field extends "gate" | "wait"> = Node extends { [Name in Field]: infer Part extends object } ? ([WrongTimes<Part>] extends [never] ? unknown : { [Name in Field]: CheckedTimes<Part> }) : unknown;

/** Refuses a node with the id of one before it, a node of two kinds, and what is no duration. Ids that are any text are not compared. */
type CheckedNodes<Nodes extends readonly unknown[], Seen = never, Found extends readonly unknown[] = []> = Nodes extends readonly [infer Node, ...infer Rest]
  ? CheckedNodes<Rest, Seen | Known<IdOf<Node>>, [...Found, Repeated<IdOf<Node>, Seen, "a node before it has the same id"> & OfOneKind<KindsOf<Node>> & CheckedTimes<Node> & Inside<Node, "gate"> & Inside<Node, "wait">]>
  : number extends Nodes["length"]
    ? unknown
    : Readonly<Found>;
type OfOneKind<Kinds extends string> = IsUnion<Kinds> extends true ? { [Field in Kinds]: Refused<"a node has one of task_id, action_id, workflow_id, gate and wait"> } : unknown;

type UniqueIds<Ids extends readonly unknown[], Seen = never, Found extends readonly unknown[] = []> = Ids extends readonly [infer Id, ...infer Rest]
  ? UniqueIds<Rest, Seen | (Id extends string ? Known<Id> : never), [...Found, Repeated<Id extends string ? Id : never, Seen, "a transition before it has the same id">]>
  : number extends Ids["length"]
    ? unknown
    : Readonly<Found>;
/** An id that is one text. One that may be any text, or any with a certain beginning, is equal to no other. */
type Known<Id extends string> = {} extends Record<Id, unknown> ? never : Id;
type Repeated<Id extends string, Seen, Problem extends string> = [Id] extends [never] ? unknown : string extends Id ? unknown : [Id] extends [Seen] ? { id: Refused<Problem> } : unknown;

/** The gate of the node `Id`; `unknown` for a node without one. */
type GateOf<Id, Nodes extends readonly unknown[]> = Extract<Nodes[number], { id: Id }> extends infer Node ? (Node extends { gate: infer Gate } ? Gate : unknown) : never;

/** The choices of a gate; without a list of its own it has two. */
type ChoicesOf<Gate> = Gate extends { choices: infer Choices } ? (Choices extends readonly (infer Choice)[] ? Choice : Default) : Gate extends object ? Default : never;
type Default = "approve" | "reject";

/** A condition with a node or a choice that is not there is refused. */
type Checked<Condition, Nodes extends readonly unknown[]> = Condition extends string
  ? [Problem<Condition, Nodes>] extends [never]
    ? Condition
    : Refused<Problem<Condition, Nodes>>
  : Condition;

type Problem<Condition extends string, Nodes extends readonly unknown[]> = Condition extends Decision<
  infer Id,
  infer Choice
>
  ? Id extends IdsOf<Nodes>
    ? string extends IdsOf<Nodes>
      ? never
      : unknown extends GateOf<Id, Nodes>
        ? `the node ${Id} is no gate`
        : NoSuchChoice<Undecidable<Id, Choice, Nodes>>
    : `the workflow has no node ${Id}`
  : NoSuchChoice<Misspelt<Condition, Nodes>>;

type NoSuchChoice<Choice extends string> = `the gate has no choice ${Choice}`;

/** `Choice`, if the gate `Id` has others only. */
type Undecidable<Id, Choice extends string, Nodes extends readonly unknown[]> = [ChoicesOf<GateOf<Id, Nodes>>] extends [never]
  ? never
  : Exclude<Choice, ChoicesOf<GateOf<Id, Nodes>>>;

/** The first choice in a condition that its gate does not have. */
type Misspelt<Condition extends string, Nodes extends readonly unknown[]> =
  Comparison<Condition> extends [infer Id, infer Choice extends string, infer Rest extends string]
    ? [Undecidable<Id, Choice, Nodes>] extends [never]
      ? Misspelt<Rest, Nodes>
      : Choice
    : never;

/** The first `state.<id>.choice == '<choice>'` in a condition, and what follows it. */
type Comparison<Condition extends string> = Condition extends `${infer Before}.choice ${"==" | "!="} ${infer After}`
  ? [NodeBefore<Before>, ...Quoted<After>]
  : [];
type NodeBefore<Before extends string> = Before extends `${string}state${infer Path}`
  ? Path extends `${string}state${string}`
    ? NodeBefore<Path>
    : Path extends `.${infer Id}` | `['${infer Id}']` | `["${infer Id}"]`
      ? Id
      : never
  : never;
type Quoted<After extends string> = After extends `'${infer Choice}'${infer Rest}` | `"${infer Choice}"${infer Rest}` ? [Choice, Rest] : [never, ""];
