//! The parameters of `GET /v1/runs`: filters, order, position and page length. Pure: a query in, a `RunList` out.

use std::collections::BTreeSet;

use crate::api::cursor;
use crate::api::error::Error;
use crate::api::scope;
use crate::base::{ids, limits};
use crate::protocol::caller::WorkflowScope;
use crate::run::RunStatus;

pub const PARAMETERS: &[&str] = &[
    "status",
    "workflow",
    "tag",
    "since",
    "until",
    "parent",
    "id_prefix",
    "sort",
    "limit",
    "cursor",
];

/// The parameters that select runs.
pub const FILTERS: &[&str] = &[
    "status",
    "workflow",
    "tag",
    "since",
    "until",
    "parent",
    "id_prefix",
];

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;
const TAG_BYTES: usize = 64;

/// A run is listed if it matches all fields that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Empty: any status.
    pub statuses: BTreeSet<RunStatus>,
    pub workflow: Option<String>,
    pub tag: Option<String>,
    /// Both bounds, inclusive, are for the start of the run.
    pub since: Option<u64>,
    pub until: Option<u64>,
    pub parent: Option<String>,
    pub id_prefix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    NewestFirst,
    /// Only runs that have not ended and have a deadline, the earliest deadline first.
    NearestDeadline,
    /// The order for an id prefix: only here matching ids are adjacent.
    ById,
}

impl Order {
    /// The list's name in cursors.
    fn name(self) -> &'static str {
        match self {
            Order::NewestFirst => "started",
            Order::NearestDeadline => "remaining",
            Order::ById => "id",
        }
    }
}

/// The last run of the previous page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The run's start or its deadline, depending on the order; 0 in the order by id.
    pub at: u64,
    pub id: String,
}

impl Position {
    pub fn read(order: Order, text: &str) -> Result<Position, Error> {
        let (at, id) = match order {
            Order::NewestFirst | Order::NearestDeadline => {
                let [at, id] = cursor::read(order.name(), text)?;
                (cursor::read_timestamp(at)?, id)
            }
            Order::ById => {
                let [id] = cursor::read(order.name(), text)?;
                (0, id)
            }
        };
        match is_run_id_prefix(id) {
            true => Ok(Position {
                at,
                id: id.to_string(),
            }),
            false => Err(cursor::invalid_cursor()),
        }
    }

    pub fn write(&self, order: Order) -> String {
        match order {
            Order::NewestFirst | Order::NearestDeadline => {
                cursor::write(order.name(), &[&self.at.to_string(), &self.id])
            }
            Order::ById => cursor::write(order.name(), &[&self.id]),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunList {
    pub filter: RunFilter,
    pub order: Order,
    pub after: Option<Position>,
    pub limit: u64,
    /// The workflows whose runs are listed. Always unlimited if `filter` has a workflow.
    pub reached: WorkflowScope,
}

impl RunList {
    /// The list for a caller that reaches these workflows. A 403 if it filters by another one.
    pub fn within(mut self, reached: &WorkflowScope) -> Result<RunList, Error> {
        match &self.filter.workflow {
            Some(workflow) => scope::check_workflow(workflow, reached)?,
            // An index leads to the runs of one workflow.
            None => match reached.only() {
                Some(workflow) => self.filter.workflow = Some(workflow.to_string()),
                None => self.reached = reached.clone(),
            },
        }
        Ok(self)
    }

    /// Ignores unknown parameters and parameters without a value: `Query` has refused them already.
    pub fn read(pairs: &[(String, String)]) -> Result<RunList, Error> {
        let filter = RunFilter::read(pairs)?;
        let order = match one(pairs, "sort")? {
            None if filter.id_prefix.is_some() => Order::ById,
            None | Some("started") => Order::NewestFirst,
            Some("remaining") => Order::NearestDeadline,
            Some(_) => return Err(Error::bad_request("sort is started or remaining")),
        };
        let after = one(pairs, "cursor")?.map(|text| Position::read(order, text));
        Ok(RunList {
            after: after.transpose()?,
            limit: read_limit(one(pairs, "limit")?)?,
            filter,
            order,
            reached: WorkflowScope::UNLIMITED,
        })
    }
}

impl RunFilter {
    pub fn read(pairs: &[(String, String)]) -> Result<RunFilter, Error> {
        let named = |name: &str, is_one: fn(&str) -> bool, rule: &str| match one(pairs, name)? {
            Some(value) if !is_one(value) => Err(Error::bad_request(format!("{name}: {rule}"))),
            value => Ok(value.map(str::to_string)),
        };
        Ok(RunFilter {
            statuses: read_statuses(pairs)?,
            workflow: named("workflow", ids::is_id, ids::ID_RULE)?,
            tag: named("tag", is_tag, "a tag is 1-64 bytes")?,
            since: timestamp(pairs, "since")?,
            until: timestamp(pairs, "until")?,
            parent: named("parent", is_run_id_prefix, ids::RUN_ID_RULE)?,
            id_prefix: named("id_prefix", is_run_id_prefix, ids::RUN_ID_RULE)?,
        })
    }
}

/// The length of a page.
pub fn read_limit(text: Option<&str>) -> Result<u64, Error> {
    match text.map(str::parse::<u64>) {
        None => Ok(LIMIT_DEFAULT),
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(Error::bad_request(format!(
            "limit is a number from 1 to {LIMIT_MAX}"
        ))),
    }
}

/// Several statuses are separated by commas, given in repeated parameters, or both.
fn read_statuses(pairs: &[(String, String)]) -> Result<BTreeSet<RunStatus>, Error> {
    let names = values(pairs, "status").flat_map(|value| value.split(','));
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let known = RunStatus::ALL.into_iter().find(|status| status.name() == name);
            known.ok_or_else(|| {
                let all = RunStatus::ALL.map(RunStatus::name).join(", ");
                Error::bad_request(format!(
                    "status is one or several of {all}, with commas between them"
                ))
            })
        })
        .collect()
}

fn timestamp(pairs: &[(String, String)], name: &str) -> Result<Option<u64>, Error> {
    let Some(text) = one(pairs, name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(at) if at <= cursor::SAFE_INTEGER_MAX => Ok(Some(at)),
        Ok(_) | Err(_) => Err(Error::bad_request(format!(
            "{name} is a moment in Unix milliseconds"
        ))),
    }
}

fn values<'a>(pairs: &'a [(String, String)], name: &str) -> impl Iterator<Item = &'a str> {
    let of_name = pairs.iter().filter(move |(key, _)| key == name);
    of_name
        .map(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}

/// The value of a parameter that takes one value. Two different values are refused: one of them would be ignored.
fn one<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Error> {
    let mut values = values(pairs, name);
    let first = values.next();
    match values.any(|value| Some(value) != first) {
        true => Err(Error::bad_request(format!("{name} is given twice"))),
        false => Ok(first),
    }
}

fn is_tag(text: &str) -> bool {
    text.len() <= TAG_BYTES
}

/// Also accepts ids of child runs, which are longer than ids of callers and contain a `~`.
fn is_run_id_prefix(text: &str) -> bool {
    (1..=limits::CHILD_RUN_ID_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'))
}
