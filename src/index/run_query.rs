//! SQL for lists of runs: from a `RunList` to the statements that read a page, and from their rows to the page. Pure. Every
//! statement is driven by an index of `migrations`; `tests/workerd/lists.test.ts` counts the rows that each list reads.

use crate::api::run_filter::{Order, Position, RunFilter, RunList};
use crate::base::ordered::sort_by;
use crate::run::RunStatus;

/// Rows that the statements of a page examine if no index covers all filters. D1 reads two rows for each, in the index and in the
/// table, so that a page stays below a thousand.
const EXAMINED_ROWS: u64 = 450;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    Text(String),
    Number(u64),
}

/// D1's limit of selects in a compound statement.
const UNION_SELECTS_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Several if one statement cannot merge all statuses.
    pub statements: Vec<Statement>,
    /// The limit of each statement: fewer rows mean the end of the list.
    pub rows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    pub bindings: Vec<Binding>,
}

/// An examined row. A row that does not match the filters has no summary.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Row {
    pub id: String,
    pub at: u64,
    pub summary: Option<String>,
    /// Only of lists for a caller that does not reach all workflows.
    #[serde(default)]
    pub workflow_id: Option<String>,
}

/// The index that drives a list, and the values it is entered with.
enum DrivingIndex<'a> {
    Ids(&'a str),
    Deadlines,
    Parent(&'a str),
    Tag(&'a str),
    /// One select for each status, merged.
    Workflow(&'a str, Vec<RunStatus>),
    Statuses(Vec<RunStatus>),
    Started,
}

impl RunList {
    pub fn query(&self) -> Query {
        let indexes: Vec<DrivingIndex> = match self.driving_index() {
            DrivingIndex::Workflow(workflow, statuses) => unions(&statuses)
                .map(|part| DrivingIndex::Workflow(workflow, part))
                .collect(),
            DrivingIndex::Statuses(statuses) => unions(&statuses).map(DrivingIndex::Statuses).collect(),
            index @ (DrivingIndex::Ids(_)
            | DrivingIndex::Deadlines
            | DrivingIndex::Parent(_)
            | DrivingIndex::Tag(_)
            | DrivingIndex::Started) => {
                vec![index]
            }
        };
        let mut rows = 0;
        let examined = EXAMINED_ROWS / indexes.len() as u64;
        let statements = indexes.into_iter().map(|index| {
            let (statement, most) = self.statement(index, examined);
            rows = most;
            statement
        });
        Query {
            statements: statements.collect(),
            rows,
        }
    }

    /// A statement and its limit of rows.
    fn statement(&self, index: DrivingIndex, examined: u64) -> (Statement, u64) {
        let mut builder = Builder::default();
        let conditions = builder.conditions(&self.filter, &index);
        let shows_all = conditions.is_empty() && self.reached.is_unlimited();
        let rows = match (self.reads_only_matches(), shows_all) {
            (true, _) => self.limit + 1,
            (false, true) => EXAMINED_ROWS.min(self.limit + 1),
            (false, false) => examined,
        };
        let mut summary = match conditions.is_empty() {
            true => "runs.summary".to_string(),
            false => format!("CASE WHEN {} THEN runs.summary END", conditions.join(" AND ")),
        };
        summary.push_str(" AS summary");
        // `page` compares: D1 allows neither long GLOB patterns nor many of them.
        if !self.reached.is_unlimited() {
            summary.push_str(", runs.workflow_id AS workflow_id");
        }
        let of_runs = |index: &str| {
            format!(
                "SELECT runs.id AS id, runs.started_at AS at, {summary} FROM runs INDEXED BY {index} WHERE "
            )
        };
        let (selects, order) = match index {
            DrivingIndex::Ids(prefix) => {
                let select = format!(
                    "SELECT runs.id AS id, 0 AS at, {summary} FROM runs WHERE {}",
                    self.ids(prefix, &mut builder)
                );
                (vec![select], "id")
            }
            DrivingIndex::Deadlines => {
                let mut select = format!(
                    "SELECT runs.id AS id, runs.timeout_at AS at, {summary} \
                     FROM runs INDEXED BY runs_by_deadline WHERE runs.ended_at IS NULL AND runs.timeout_at IS NOT NULL"
                );
                if let Some(after) = &self.after {
                    let (at, id) = (builder.number(after.at), builder.text(&after.id));
                    select.push_str(&format!(" AND (runs.timeout_at, runs.id) > ({at}, {id})"));
                }
                (vec![select], "at, id")
            }
            DrivingIndex::Parent(parent) => {
                let started = self.started("runs.started_at", "runs.id", &mut builder);
                let parent = builder.text(parent);
                let select = of_runs("runs_by_parent") + &format!("runs.parent_id = {parent} AND {started}");
                (vec![select], NEWEST_FIRST)
            }
            DrivingIndex::Tag(tag) => {
                let started = self.started("run_tags.started_at", "run_tags.run_id", &mut builder);
                let tag = builder.text(tag);
                let select = format!(
                    "SELECT run_tags.run_id AS id, run_tags.started_at AS at, {summary} \
                     FROM run_tags CROSS JOIN runs ON runs.id = run_tags.run_id WHERE run_tags.tag = {tag} AND {started}"
                );
                (vec![select], NEWEST_FIRST)
            }
            DrivingIndex::Workflow(workflow, statuses) => {
                let started = self.started("runs.started_at", "runs.id", &mut builder);
                let workflow = builder.text(workflow);
                let in_status = |status: RunStatus| {
                    let status = builder.text(status.name());
                    let both = format!("runs.workflow_id = {workflow} AND runs.status = {status}");
                    of_runs("runs_by_workflow") + &format!("{both} AND {started}")
                };
                (statuses.into_iter().map(in_status).collect(), NEWEST_FIRST)
            }
            DrivingIndex::Statuses(statuses) => {
                let started = self.started("runs.started_at", "runs.id", &mut builder);
                let in_status = |status: RunStatus| {
                    let status = builder.text(status.name());
                    of_runs("runs_by_status") + &format!("runs.status = {status} AND {started}")
                };
                (statuses.into_iter().map(in_status).collect(), NEWEST_FIRST)
            }
            DrivingIndex::Started => {
                let started = self.started("runs.started_at", "runs.id", &mut builder);
                (vec![of_runs("runs_by_started") + &started], NEWEST_FIRST)
            }
        };
        let most = builder.number(rows);
        let statement = Statement {
            sql: format!("{} ORDER BY {order} LIMIT {most}", selects.join(" UNION ALL ")),
            bindings: builder.bindings,
        };
        (statement, rows)
    }

    /// The summaries of the page and the cursor of the next one, from the rows of all statements. `rows_max` is the limit of each
    /// statement.
    pub fn page(&self, mut rows: Vec<Row>, rows_max: u64) -> (Vec<String>, Option<String>) {
        match self.order {
            Order::NewestFirst => sort_by(&mut rows, |a, b| (b.at, &b.id).cmp(&(a.at, &a.id))),
            Order::NearestDeadline | Order::ById => {
                sort_by(&mut rows, |a, b| (a.at, &a.id).cmp(&(b.at, &b.id)))
            }
        }
        rows.truncate(rows_max as usize);
        let found = rows.len();
        let mut shown = Vec::new();
        let mut seen = 0;
        let mut last = None;
        for row in rows {
            if shown.len() as u64 == self.limit {
                break;
            }
            seen += 1;
            last = Some(Position {
                at: row.at,
                id: row.id,
            });
            let is_reached = self.reached.is_unlimited()
                || row
                    .workflow_id
                    .is_some_and(|workflow| self.reached.contains(&workflow));
            shown.extend(row.summary.filter(|_| is_reached));
        }
        let is_more = seen < found || found as u64 == rows_max;
        let next = last.filter(|_| is_more).map(|last| last.write(self.order));
        (shown, next)
    }

    fn driving_index(&self) -> DrivingIndex<'_> {
        let filter = &self.filter;
        match (self.order, &filter.id_prefix) {
            (Order::ById, Some(prefix)) => return DrivingIndex::Ids(prefix),
            (Order::ById, None) => return DrivingIndex::Ids(""),
            (Order::NearestDeadline, _) => return DrivingIndex::Deadlines,
            (Order::NewestFirst, _) => {}
        }
        if let Some(parent) = &filter.parent {
            return DrivingIndex::Parent(parent);
        }
        if let Some(tag) = &filter.tag {
            return DrivingIndex::Tag(tag);
        }
        let statuses: Vec<RunStatus> = filter.statuses.iter().copied().collect();
        match (&filter.workflow, statuses.is_empty()) {
            (Some(workflow), true) => DrivingIndex::Workflow(workflow, RunStatus::ALL.to_vec()),
            (Some(workflow), false) => DrivingIndex::Workflow(workflow, statuses),
            (None, false) => DrivingIndex::Statuses(statuses),
            (None, true) => DrivingIndex::Started,
        }
    }

    /// Whether every examined row is on the page: there is one filter, or a workflow with a status.
    fn reads_only_matches(&self) -> bool {
        let RunFilter {
            statuses,
            workflow,
            tag,
            since,
            until,
            parent,
            id_prefix,
        } = &self.filter;
        let of_both = usize::from(!statuses.is_empty()) + usize::from(workflow.is_some());
        let others = [
            tag.is_some(),
            since.is_some(),
            until.is_some(),
            parent.is_some(),
            id_prefix.is_some(),
        ];
        let others = others.into_iter().filter(|is_set| *is_set).count();
        if !self.reached.is_unlimited() {
            return false;
        }
        match self.order {
            Order::NewestFirst => {
                (of_both + others <= 1 && id_prefix.is_none()) || (of_both == 2 && others == 0)
            }
            Order::ById => of_both + others <= 1,
            Order::NearestDeadline => of_both + others == 0,
        }
    }

    /// The range of starts. One upper bound, the cursor or `until`: SQLite enters an index with one.
    fn started(&self, at: &str, id: &str, builder: &mut Builder) -> String {
        let until = self.filter.until;
        let mut terms = Vec::new();
        match &self.after {
            Some(after) if until.is_none_or(|until| after.at <= until) => {
                let (after_at, after_id) = (builder.number(after.at), builder.text(&after.id));
                terms.push(format!("({at}, {id}) < ({after_at}, {after_id})"));
            }
            Some(_) | None => terms.extend(until.map(|until| format!("{at} <= {}", builder.number(until)))),
        }
        terms.extend(
            self.filter
                .since
                .map(|since| format!("{at} >= {}", builder.number(since))),
        );
        match terms.is_empty() {
            true => "true".into(),
            false => terms.join(" AND "),
        }
    }

    fn ids(&self, prefix: &str, builder: &mut Builder) -> String {
        let from = match &self.after {
            Some(after) if after.id.as_str() >= prefix => format!("runs.id > {}", builder.text(&after.id)),
            Some(_) | None => format!("runs.id >= {}", builder.text(prefix)),
        };
        // Sorts after every character of an id.
        let to = builder.text(&format!("{prefix}\u{7f}"));
        format!("{from} AND runs.id < {to}")
    }
}

const NEWEST_FIRST: &str = "at DESC, id DESC";

fn unions(statuses: &[RunStatus]) -> impl Iterator<Item = Vec<RunStatus>> {
    statuses.chunks(UNION_SELECTS_MAX).map(<[RunStatus]>::to_vec)
}

#[derive(Default)]
struct Builder {
    bindings: Vec<Binding>,
}

impl Builder {
    fn text(&mut self, text: &str) -> String {
        self.bind(Binding::Text(text.to_string()))
    }

    fn number(&mut self, number: u64) -> String {
        self.bind(Binding::Number(number))
    }

    fn bind(&mut self, binding: Binding) -> String {
        self.bindings.push(binding);
        format!("?{}", self.bindings.len())
    }

    /// The filters that the driving index does not cover.
    fn conditions(&mut self, filter: &RunFilter, index: &DrivingIndex) -> Vec<String> {
        let (by_status, by_workflow, by_tag, by_parent, by_started, by_id) = match index {
            DrivingIndex::Ids(_) => (false, false, false, false, false, true),
            DrivingIndex::Deadlines => (false, false, false, false, false, false),
            DrivingIndex::Parent(_) => (false, false, false, true, true, false),
            DrivingIndex::Tag(_) => (false, false, true, false, true, false),
            DrivingIndex::Workflow(..) => (true, true, false, false, true, false),
            DrivingIndex::Statuses(_) => (true, false, false, false, true, false),
            DrivingIndex::Started => (false, false, false, false, true, false),
        };
        let mut conditions = Vec::new();
        if !by_status && !filter.statuses.is_empty() {
            let names = filter.statuses.iter().map(|status| self.text(status.name()));
            let names = names.collect::<Vec<_>>().join(", ");
            conditions.push(format!("runs.status IN ({names})"));
        }
        if let Some(workflow) = filter.workflow.as_ref().filter(|_| !by_workflow) {
            conditions.push(format!("runs.workflow_id = {}", self.text(workflow)));
        }
        if let Some(tag) = filter.tag.as_ref().filter(|_| !by_tag) {
            // Not `json_each(runs.tags)`: D1 would bill every tag as a row read.
            let tag = self.text(tag);
            conditions.push(format!(
                "EXISTS (SELECT 1 FROM run_tags WHERE run_tags.tag = {tag} \
                 AND run_tags.started_at = runs.started_at AND run_tags.run_id = runs.id)"
            ));
        }
        if let Some(parent) = filter.parent.as_ref().filter(|_| !by_parent) {
            conditions.push(format!("runs.parent_id = {}", self.text(parent)));
        }
        if let Some(since) = filter.since.filter(|_| !by_started) {
            conditions.push(format!("runs.started_at >= {}", self.number(since)));
        }
        if let Some(until) = filter.until.filter(|_| !by_started) {
            conditions.push(format!("runs.started_at <= {}", self.number(until)));
        }
        if let Some(prefix) = filter.id_prefix.as_ref().filter(|_| !by_id) {
            let (from, to) = (self.text(prefix), self.text(&format!("{prefix}\u{7f}")));
            conditions.push(format!("(runs.id >= {from} AND runs.id < {to})"));
        }
        conditions
    }
}
