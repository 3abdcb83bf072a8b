//! How orders travel: which of them share one invocation of the executor.

use super::effect::Order;
use crate::model::snapshot::Snapshot;
use crate::model::task::StepAction;

/// Tasks that touch nothing but their own context share an invocation: they only take each other's CPU.
const PURE_TASKS: usize = 50;

/// Splits the orders of one commit into invocations. A task that calls out has one of its own: an invocation ends as
/// a whole, and aborting one attempt must close its connections and nobody else's.
pub fn invocations(orders: Vec<Order>, snapshot: &Snapshot) -> Vec<Vec<Order>> {
    let (pure, calling): (Vec<Order>, Vec<Order>) =
        orders.into_iter().partition(|order| is_pure(order, snapshot));
    let mut invocations: Vec<Vec<Order>> = Vec::new();
    let mut pure = pure.into_iter().peekable();
    while pure.peek().is_some() {
        invocations.push(pure.by_ref().take(PURE_TASKS).collect());
    }
    invocations.extend(calling.into_iter().map(|order| vec![order]));
    invocations
}

fn is_pure(order: &Order, snapshot: &Snapshot) -> bool {
    let task = snapshot.tasks.get(order.task);
    task.is_some_and(|task| {
        task.task.steps.iter().all(|step| match &step.action {
            StepAction::Inline(action) => action.is_pure(),
            StepAction::Reference { .. } => false,
        })
    })
}
