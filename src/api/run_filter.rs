//! Which runs are asked for, in which order, and from where on. Pure: a query in, a list out.

use std::collections::BTreeSet;

use crate::api::cursor;
use crate::api::error::Error;
use crate::base::{ids, limits};
use crate::run::RunStatus;

/// Every parameter that `GET /v1/runs` knows.
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

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;
const TAG_BYTES: usize = 64;

/// What all runs of the list have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// None: any.
    pub statuses: BTreeSet<RunStatus>,
    pub workflow: Option<String>,
    pub tag: Option<String>,
    /// Both are moments at which a run may have started.
    pub since: Option<u64>,
    pub until: Option<u64>,
    pub parent: Option<String>,
    pub id_prefix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    NewestFirst,
    /// Runs that have not ended and have a limit: the one whose limit passes first comes first.
    NearestDeadline,
    /// What begins with the same letters lies together only in this order.
    ById,
}

impl Order {
    /// How its cursors begin.
    fn name(self) -> &'static str {
        match self {
            Order::NewestFirst => "started",
            Order::NearestDeadline => "remaining",
            Order::ById => "id",
        }
    }
}

/// A run's place in the order of its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// When it started, or when its limit passes; 0 where only ids count.
    pub at: u64,
    pub id: String,
}

impl Position {
    pub fn read(order: Order, text: &str) -> Result<Position, Error> {
        let (at, id) = match order {
            Order::NewestFirst | Order::NearestDeadline => {
                let [at, id] = cursor::read(order.name(), text)?;
                (cursor::read_moment(at)?, id)
            }
            Order::ById => {
                let [id] = cursor::read(order.name(), text)?;
                (0, id)
            }
        };
        match could_begin_an_id(id) {
            true => Ok(Position {
                at,
                id: id.to_string(),
            }),
            false => Err(cursor::refusal()),
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
}

impl RunList {
    /// Parameters it does not know are none of its business. One without a value is one that was not given.
    pub fn read(pairs: &[(String, String)]) -> Result<RunList, Error> {
        let filter = RunFilter::read(pairs)?;
        let order = match one(pairs, "sort")? {
            None if filter.id_prefix.is_some() => Order::ById,
            None | Some("started") => Order::NewestFirst,
            Some("remaining") => Order::NearestDeadline,
            Some(_) => return Err(invalid("sort is started or remaining")),
        };
        let after = one(pairs, "cursor")?.map(|text| Position::read(order, text));
        Ok(RunList {
            after: after.transpose()?,
            limit: read_limit(one(pairs, "limit")?)?,
            filter,
            order,
        })
    }
}

impl RunFilter {
    pub fn read(pairs: &[(String, String)]) -> Result<RunFilter, Error> {
        let named = |name: &str, is_one: fn(&str) -> bool, rule: &str| match one(pairs, name)? {
            Some(value) if !is_one(value) => Err(invalid(format!("{name}: {rule}"))),
            value => Ok(value.map(str::to_string)),
        };
        Ok(RunFilter {
            statuses: read_statuses(pairs)?,
            workflow: named("workflow", ids::is_id, ids::ID_RULE)?,
            tag: named("tag", is_tag, "a tag is 1-64 bytes")?,
            since: moment(pairs, "since")?,
            until: moment(pairs, "until")?,
            parent: named("parent", could_begin_an_id, ids::RUN_ID_RULE)?,
            id_prefix: named("id_prefix", could_begin_an_id, ids::RUN_ID_RULE)?,
        })
    }
}

/// How many items a page may have.
pub fn read_limit(text: Option<&str>) -> Result<u64, Error> {
    match text.map(str::parse::<u64>) {
        None => Ok(LIMIT_DEFAULT),
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(invalid(format!("limit is a number from 1 to {LIMIT_MAX}"))),
    }
}

/// Several by commas, by repetition, or both.
fn read_statuses(pairs: &[(String, String)]) -> Result<BTreeSet<RunStatus>, Error> {
    let names = values(pairs, "status").flat_map(|value| value.split(','));
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let known = RunStatus::ALL.into_iter().find(|status| status.name() == name);
            known.ok_or_else(|| {
                let all = RunStatus::ALL.map(RunStatus::name).join(", ");
                invalid(format!(
                    "status is one or several of {all}, with commas between them"
                ))
            })
        })
        .collect()
}

fn moment(pairs: &[(String, String)], name: &str) -> Result<Option<u64>, Error> {
    let Some(text) = one(pairs, name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(at) if at <= cursor::MOMENT_MAX => Ok(Some(at)),
        Ok(_) | Err(_) => Err(invalid(format!("{name} is a moment in Unix milliseconds"))),
    }
}

fn values<'a>(pairs: &'a [(String, String)], name: &str) -> impl Iterator<Item = &'a str> {
    let of_name = pairs.iter().filter(move |(key, _)| key == name);
    of_name
        .map(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}

/// The value of a parameter that takes one. Two different values are refused: one of them would be ignored.
fn one<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Error> {
    let mut values = values(pairs, name);
    let first = values.next();
    match values.any(|value| Some(value) != first) {
        true => Err(invalid(format!("{name} is given twice"))),
        false => Ok(first),
    }
}

fn is_tag(text: &str) -> bool {
    text.len() <= TAG_BYTES
}

/// Ids of children are longer than those a user may choose, and hold a character of their own.
fn could_begin_an_id(text: &str) -> bool {
    (1..=limits::CHILD_RUN_ID_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(400, "invalid_request", message)
}
