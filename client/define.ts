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
 * compares it with the nodes and with the `choices` of the gate. In the same text written by hand it compares the choice only: `state` also
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
 * Returns `workflow` as it is. The compiler refuses an unknown field, and the id of a node, a task, an action or a sibling group that the
 * document does not have. Ids of tasks and actions that are stored by themselves are written as `stored("id")`.
 */
export function defineWorkflow<
  const Id extends string,
  const NodeIds extends readonly string[],
  const Choices extends readonly unknown[],
  const Signals extends readonly unknown[],
  const Conditions extends readonly unknown[] = [],
  const TaskId extends string = never,
  const ActionId extends string = never,
  const Group extends string = never,
  const TransitionId extends string = never,
>(
  workflow: Replace<
    WorkflowDocument,
    {
      id: Id;
      nodes: WithIds<NodeIds, Node<NoInfer<TaskId>, NoInfer<ActionId>>> & WithChoices<Choices, Node<NoInfer<TaskId>, NoInfer<ActionId>>> &
        WithSignals<Signals, Node<NoInfer<TaskId>, NoInfer<ActionId>>>;
      transitions?: readonly Transition<NoInfer<NodeIds[number]>, TransitionId, Group>[] &
        WithConditions<Conditions, NodeIds, Choices, Transition<NoInfer<NodeIds[number]>, NoInfer<TransitionId>, NoInfer<Group>>>;
      initial_node_id?: NoInfer<NodeIds[number]>;
      tasks?: readonly Task<TaskId, NoInfer<ActionId>>[];
      actions?: readonly (ActionDocument & { id: ActionId })[];
      on_end?: readonly Work<NonNullable<WorkflowDocument["on_end"]>[number], NoInfer<TaskId>, NoInfer<ActionId>>[];
    }
  >,
): DefinedWorkflow<Id, NodeIds, Choices, ActionId, Signals> {
  return workflow as unknown as DefinedWorkflow<Id, NodeIds, Choices, ActionId, Signals>;
}

/** A workflow whose ids, choices and signals are known to the compiler: `curfew/testing` checks names with them. */
export type DefinedWorkflow<
  Id extends string,
  NodeIds extends readonly string[],
  Choices extends readonly unknown[],
  ActionId extends string,
  Signals extends readonly unknown[] = [],
> = WorkflowDocument & {
  id: Id;
  nodes: {
    [Index in keyof NodeIds]: {
      id: NodeIds[Index];
      gate?: { choices?: Index extends keyof Choices ? Choices[Index] : unknown };
      wait?: { signal?: Index extends keyof Signals ? Signals[Index] : unknown };
    };
  };
  actions?: readonly { id: ActionId }[];
};

type Replace<Whole, Parts> = Omit<Whole, keyof Parts> & Parts;

/** What a node, a compensation or an end handler runs. */
type Work<Whole, TaskId extends string, ActionId extends string> = Replace<Whole, { task_id?: TaskId | StoredId; action_id?: ActionId | StoredId }>;

/** Where a mapping of a node may write to. */
type Target = `state.${string}` | `output.${string}` | "_branch.output" | `_branch.output.${string}`;

type Node<TaskId extends string, ActionId extends string> = Replace<
  Work<Documents["node"], TaskId, ActionId>,
  { output_mapping?: { [target in Target]?: unknown }; compensate?: Work<Documents["compensate"], TaskId, ActionId> }
>;

type Task<TaskId extends string, ActionId extends string> = Replace<
  TaskDocument,
  { id: TaskId; steps: readonly Replace<Documents["step"], { action_id?: ActionId | StoredId }>[] }
>;

type Transition<NodeId, TransitionId extends string, Group extends string> = Replace<
  Documents["transition"],
  {
    id?: TransitionId;
    from_node_id: NodeId;
    to_node_id: NodeId;
    condition?: string;
    sibling_group?: Group;
    // A transition that fans out makes a group with its own id.
    synchronization?: Replace<Documents["synchronization"], { sibling_group: NoInfer<Group | TransitionId> }>;
  }
>;

// Ids, choices and conditions are collected as lists in the order of nodes and transitions: a choice is compared with those of its gate.
type WithIds<Ids extends readonly string[], Node> = { [Index in keyof Ids]: Node & { id: Ids[Index] } };
type WithChoices<Choices extends readonly unknown[], Node> = { [Index in keyof Choices]: Node & { gate?: { choices?: Choices[Index] } } };
type WithSignals<Signals extends readonly unknown[], Node> = { [Index in keyof Signals]: Node & { wait?: { signal?: Signals[Index] } } };
type WithConditions<Conditions extends readonly unknown[], NodeIds extends readonly string[], Choices extends readonly unknown[], Transition> = {
  [Index in keyof Conditions]: Transition & { condition?: Conditions[Index] & NoInfer<Checked<Conditions[Index], NodeIds, Choices>> };
};

/** The choices that the gate `Id` lists; `never` for a node that lists none. */
type ChoicesOf<Id, NodeIds extends readonly string[], Choices extends readonly unknown[]> = {
  [Index in keyof NodeIds]: NodeIds[Index] extends Id ? (Index extends keyof Choices ? (Choices[Index] extends readonly (infer Choice)[] ? Choice : never) : never) : never;
}[number];

/** A condition with a node or a choice that is not there gets a type that no string has. */
type Checked<Condition, NodeIds extends readonly string[], Choices extends readonly unknown[]> = Condition extends string
  ? [Problem<Condition, NodeIds, Choices>] extends [never]
    ? Condition
    : { problem: Problem<Condition, NodeIds, Choices> }
  : Condition;

type Problem<Condition extends string, NodeIds extends readonly string[], Choices extends readonly unknown[]> = Condition extends Decision<
  infer Id,
  infer Choice
>
  ? Id extends NodeIds[number]
    ? NoSuchChoice<Undecidable<Id, Choice, NodeIds, Choices>>
    : `the workflow has no node ${Id}`
  : NoSuchChoice<Misspelt<Condition, NodeIds, Choices>>;

type NoSuchChoice<Choice extends string> = `the gate has no choice ${Choice}`;

/** `Choice`, if the gate `Id` lists others only. */
type Undecidable<Id, Choice extends string, NodeIds extends readonly string[], Choices extends readonly unknown[]> = [ChoicesOf<Id, NodeIds, Choices>] extends [never]
  ? never
  : Exclude<Choice, ChoicesOf<Id, NodeIds, Choices>>;

/** The first choice in a condition that its gate does not have. */
type Misspelt<Condition extends string, NodeIds extends readonly string[], Choices extends readonly unknown[]> =
  Comparison<Condition> extends [infer Id, infer Choice extends string, infer Rest extends string]
    ? [Undecidable<Id, Choice, NodeIds, Choices>] extends [never]
      ? Misspelt<Rest, NodeIds, Choices>
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
