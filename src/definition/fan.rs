//! Fan-out and fan-in of a transition.

use crate::base::limits::FAN_OUT_WIDTH;
use crate::base::text::shorten;
use crate::base::time::Limit;
use crate::cel::Expression;
use crate::definition::NOW;
use crate::definition::path::Path;
use crate::definition::problem::UNKNOWN_FIELD;
use crate::definition::reader::Reader;

/// How many tokens a transition creates.
#[derive(Clone, Debug, PartialEq)]
pub enum Spawn {
    One,
    Count(u32),
    ForEach {
        collection: Expression,
        item_var: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Synchronization {
    pub strategy: Strategy,
    pub group: String,
    pub timeout: Limit,
    pub on_timeout: SyncTimeoutPolicy,
    pub on_branch_failure: BranchFailurePolicy,
    pub on_early_complete: EarlyCompletePolicy,
    pub merge: Option<Merge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    All,
    Any,
    MOfN(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncTimeoutPolicy {
    ProceedWithAvailable,
    Fail,
}

/// What a join with strategy `all` does when a branch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchFailurePolicy {
    ProceedWithAvailable,
    Fail,
}

/// What happens to branches that are still running when the join fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyCompletePolicy {
    /// Their calls continue, but the results are ignored.
    Abandon,
    /// Their calls are aborted.
    Cancel,
    /// They continue and are merged when they arrive.
    AllowLateMerge,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub source: Expression,
    pub target: Path,
    pub strategy: MergeStrategy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStrategy {
    Append,
    Concat,
    MergeObject,
    KeyedByBranch,
    LastWins,
}

/// `names` are the ones that the collection may use.
pub fn read_spawn(reader: &Reader, names: &[&str]) -> Spawn {
    let count = reader.integer("spawn_count", 1, FAN_OUT_WIDTH as i64);
    let each = reader.object("foreach").and_then(|each| {
        each.required_string("collection");
        let collection = each.expression("collection", names);
        let item_var = each.string("item_var").unwrap_or("item");
        // Older builds allowed `now`: in a stored document it is the item.
        let is_taken = item_var == NOW && !each.problems().is_prechecked();
        if is_taken || !is_variable(item_var) {
            each.report(
                "item_var",
                "invalid_id",
                format!("\"{}\" is no name for a variable that is free", shorten(item_var)),
            );
        }
        each.finish();
        Some(Spawn::ForEach {
            collection: collection?,
            item_var: item_var.to_string(),
        })
    });
    if reader.has("foreach") && reader.has("spawn_count") {
        reader.report(
            "foreach",
            "both_forms",
            "write either \"foreach\" or \"spawn_count\", not both",
        );
    }
    match (each, count) {
        (Some(each), _) => each,
        (None, Some(count)) => Spawn::Count(count as u32),
        (None, None) => Spawn::One,
    }
}

fn is_variable(name: &str) -> bool {
    const RESERVED: &[&str] = &[
        "input", "state", "output", "run", "error", "result", "_branch", "secret", "true", "false", "null",
        "in",
    ];
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
        && name.len() <= 64
        && !RESERVED.contains(&name)
}

pub fn read_synchronization(reader: &Reader) -> Option<Synchronization> {
    let reader = reader.object("synchronization")?;
    let strategy = read_strategy(&reader);
    let group = reader.required_string("sibling_group");
    let timeout = reader.limit("timeout", "timeout_ms");
    let on_timeout = reader.choice(
        "on_timeout",
        &[
            ("proceed_with_available", SyncTimeoutPolicy::ProceedWithAvailable),
            ("fail", SyncTimeoutPolicy::Fail),
        ],
    );
    let on_branch_failure = reader.choice(
        "on_branch_failure",
        &[
            (
                "proceed_with_available",
                BranchFailurePolicy::ProceedWithAvailable,
            ),
            ("fail", BranchFailurePolicy::Fail),
        ],
    );
    if reader.has("on_branch_failure")
        && !matches!(strategy, Some(Strategy::All) | None)
        && !reader.problems().is_prechecked()
    {
        let message =
            "\"on_branch_failure\" means nothing here: only the strategy \"all\" needs every branch";
        reader.report("on_branch_failure", UNKNOWN_FIELD, message);
    }
    let on_early_complete = reader.choice(
        "on_early_complete",
        &[
            ("abandon", EarlyCompletePolicy::Abandon),
            ("cancel", EarlyCompletePolicy::Cancel),
            ("allow_late_merge", EarlyCompletePolicy::AllowLateMerge),
        ],
    );
    let merge = reader.object("merge").and_then(read_merge);
    reader.finish();
    Some(Synchronization {
        strategy: strategy?,
        group: group?.to_string(),
        timeout,
        on_timeout: on_timeout.unwrap_or(SyncTimeoutPolicy::Fail),
        on_branch_failure: on_branch_failure.unwrap_or(BranchFailurePolicy::Fail),
        on_early_complete: on_early_complete.unwrap_or(EarlyCompletePolicy::Abandon),
        merge,
    })
}

fn read_strategy(reader: &Reader) -> Option<Strategy> {
    let Some(strategy) = reader.value("strategy") else {
        return Some(Strategy::All);
    };
    if strategy.is_object() {
        let quorum = reader.object("strategy")?;
        let count = quorum.integer("m_of_n", 1, FAN_OUT_WIDTH as i64);
        if !quorum.has("m_of_n") {
            quorum.report("m_of_n", "missing_field", "write {\"m_of_n\": 2}");
        }
        quorum.finish();
        return Some(Strategy::MOfN(count? as u32));
    }
    reader.choice("strategy", &[("all", Strategy::All), ("any", Strategy::Any)])
}

fn read_merge(reader: Reader) -> Option<Merge> {
    let source = match reader.has("source") {
        true => reader.expression("source", &["_branch", NOW]),
        false => Some(Expression::new("_branch.output")),
    };
    let target = reader
        .required_string("target")
        .and_then(|text| match Path::parse(text) {
            Ok(path) => Some(path),
            Err(message) => {
                reader.report("target", "invalid_target", message);
                None
            }
        });
    let strategy = reader.choice(
        "strategy",
        &[
            ("append", MergeStrategy::Append),
            ("concat", MergeStrategy::Concat),
            ("merge_object", MergeStrategy::MergeObject),
            ("keyed_by_branch", MergeStrategy::KeyedByBranch),
            ("last_wins", MergeStrategy::LastWins),
        ],
    );
    reader.finish();
    Some(Merge {
        source: source?,
        target: target?,
        strategy: strategy.unwrap_or(MergeStrategy::Append),
    })
}
