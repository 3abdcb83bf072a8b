//! Retries and restarts: the events that are built from the run's rows, on its own version or on another one.

use std::rc::Rc;

use crate::api::error::Error as ApiError;
use crate::api::rejection;
use crate::base::text::shorten;
use crate::definition::snapshot::Snapshot;
use crate::host::object::{Accepted, Host};
use crate::host::platform::{Error, Platform, Result};
use crate::host::subrequests::SubrequestBudget;
use crate::protocol::run::RetryMode;
use crate::protocol::start::ResolvedVersion;
use crate::run::{CallbackSecret, Event, Misfit, NewVersion, Rejection, TokenId};

type Answer<T> = std::result::Result<T, ApiError>;

impl<P: Platform> Host<P> {
    pub(super) fn feed_restart(
        &self,
        budget: &SubrequestBudget,
        by: Option<String>,
        from_node_id: Option<&str>,
        version: Option<ResolvedVersion>,
    ) -> Result<Answer<Accepted>> {
        let version = self.new_version(version)?;
        self.feed_from_rows(budget, || self.restart_event(by, from_node_id, version))
    }

    pub(super) fn feed_retry(
        &self,
        budget: &SubrequestBudget,
        by: Option<String>,
        mode: RetryMode,
        token_id: Option<&str>,
        version: Option<ResolvedVersion>,
    ) -> Result<Answer<Accepted>> {
        let version = self.new_version(version)?;
        self.feed_from_rows(budget, || self.retry_event(by, mode, token_id, version))
    }

    fn new_version(&self, version: Option<ResolvedVersion>) -> Result<Option<NewVersion>> {
        let Some(version) = version else {
            return Ok(None);
        };
        let snapshot = self.parse_snapshot(version.stored.get())?;
        // Cached by the ids of nodes, which may call other workflows now.
        self.child_snapshots.borrow_mut().clear();
        Ok(Some(NewVersion {
            callback_secret: match version.callback_secret {
                Some(secret) => Some(CallbackSecret::Derived(secret)),
                None if snapshot.has_async => Some(CallbackSecret::Random(self.platform.random_id()?)),
                None => None,
            },
            snapshot,
        }))
    }

    fn restart_event(
        &self,
        by: Option<String>,
        from_node_id: Option<&str>,
        version: Option<NewVersion>,
    ) -> Result<Answer<Event>> {
        let own = self.with_run(|run| Rc::clone(run.snapshot()))?;
        let snapshot = version.as_ref().map_or(&own, |version| &version.snapshot);
        let from = match from_node_id {
            None => None,
            Some(node) => match self.restart_point(node, snapshot)? {
                Some(Ok(point)) => Some(point),
                Some(Err(rejection)) => return Ok(Err(rejection::response(&rejection))),
                None => return Ok(Err(unknown_node(node, &own, snapshot))),
            },
        };
        let version = match version {
            Some(version) => Some((version, Box::new(self.past()?))),
            None => None,
        };
        Ok(Ok(Event::RestartRequested { from, by, version }))
    }

    fn retry_event(
        &self,
        by: Option<String>,
        mode: RetryMode,
        token_id: Option<&str>,
        version: Option<NewVersion>,
    ) -> Result<Answer<Event>> {
        let token = token_id.map(TokenId::parse);
        if token == Some(None) {
            return Ok(Err(ApiError::not_found("the token")));
        }
        let past = Box::new(self.past()?);
        let own = self.with_run(|run| Rc::clone(run.snapshot()))?;
        let snapshot = version.as_ref().map_or(&own, |version| &version.snapshot);
        let plan = self.with_run(|run| run.resume_plan_on(snapshot, &past))?;
        let rows = Box::new(self.rows_to_go_on(&plan, snapshot)?);
        Ok(Ok(Event::RetryRequested {
            by,
            mode,
            token: token.flatten(),
            version,
            past,
            rows,
        }))
    }

    /// Objects of the same isolate share parsed snapshots.
    pub(super) fn parse_snapshot(&self, text: &str) -> Result<Rc<Snapshot>> {
        let mut snapshots = self.snapshots.borrow_mut();
        let snapshot = snapshots.get_or_try_insert(text, Snapshot::parse);
        snapshot.map_err(|message| Error(format!("unreadable snapshot: {message}")))
    }
}

fn unknown_node(node: &str, own: &Snapshot, snapshot: &Snapshot) -> ApiError {
    if own.workflow.declared_node_index(node).is_some() {
        return rejection::response(&Rejection::VersionDoesNotFit {
            version: snapshot.version,
            misfits: vec![Misfit::of_node(node, "the version has no such node")],
        });
    }
    let message = format!("no node is named \"{}\"", shorten(node));
    ApiError::invalid_request("/from_node_id", message)
}
