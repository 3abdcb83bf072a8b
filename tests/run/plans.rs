//! The events of a retry and of a restart, as the object makes them of its rows.

use curfew::definition::snapshot::Snapshot;
use curfew::run::{
    Event, NewVersion, Rejection, RestartPoint, ResumeRows, RetryMode, Rewind, Run, TokenId, WrittenAt,
};
use curfew::simulate::Store;
use curfew::storage::restore;
use curfew::storage::rows::patches_of;

pub trait Plans {
    /// As the object asks for it: with the plan's rows and no others.
    fn retry(&self, run: &Run, by: Option<&str>, mode: RetryMode, token: Option<TokenId>) -> Event;

    /// As `retry`, on another version.
    fn retry_on(
        &self,
        run: &Run,
        by: Option<&str>,
        mode: RetryMode,
        token: Option<TokenId>,
        version: Option<NewVersion>,
    ) -> Event;

    /// The way back to a node, as the object finds it.
    fn restart_point(&self, run: &Run, node_id: &str) -> Result<RestartPoint, Rejection>;

    /// As `restart_point`, on another version.
    fn restart_point_on(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        node_id: &str,
    ) -> Result<RestartPoint, Rejection>;
}

impl Plans for Store {
    fn retry(&self, run: &Run, by: Option<&str>, mode: RetryMode, token: Option<TokenId>) -> Event {
        self.retry_on(run, by, mode, token, None)
    }

    fn retry_on(
        &self,
        run: &Run,
        by: Option<&str>,
        mode: RetryMode,
        token: Option<TokenId>,
        version: Option<NewVersion>,
    ) -> Event {
        let snapshot = version
            .as_ref()
            .map_or(run.snapshot(), |version| &version.snapshot);
        let past = self.past().expect("rows can be read");
        let plan = run.resume_plan_on(snapshot, &past);
        let mut rows = ResumeRows::default();
        for id in &plan.tokens {
            let (status, row) = &self.tokens[&id.0];
            let token = restore::token_to_go_on(id.0, status, row, snapshot);
            match token.expect("rows can be read") {
                Ok(mut token) => {
                    if token.undo.apart.contains(&WrittenAt::Exit) {
                        token.undo.writes = self.undo(token.id.0, WrittenAt::Exit);
                    }
                    rows.tokens.push(token);
                }
                Err(misfit) => rows.misfits.push(misfit),
            }
        }
        for id in &plan.instances {
            let row = &self.run[&format!("instance/{}", id.0)];
            match restore::instance_to_go_on(row, snapshot).expect("rows can be read") {
                Ok(instance) => rows.instances.push(instance),
                Err(misfits) => rows.misfits.extend(misfits),
            }
        }
        Event::RetryRequested {
            by: by.map(str::to_string),
            mode,
            token,
            version,
            past: Box::new(past),
            rows: Box::new(rows),
        }
    }

    fn restart_point(&self, run: &Run, node_id: &str) -> Result<RestartPoint, Rejection> {
        self.restart_point_on(run, run.snapshot(), node_id)
    }

    fn restart_point_on(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        node_id: &str,
    ) -> Result<RestartPoint, Rejection> {
        let node = snapshot
            .workflow
            .node_index(node_id)
            .expect("a node of the document");
        let past = self.past().expect("rows can be read");
        let mut rewind = Rewind::plan(run, snapshot, node, &past.tokens)?;
        for (token, at) in rewind.writes().to_vec() {
            let (_, row) = &self.tokens[&token.0];
            let patches = patches_of(row, at).expect("rows can be read");
            rewind.undo(&patches.unwrap_or_else(|| self.undo(token.0, at)));
        }
        Ok(rewind.finish())
    }
}
