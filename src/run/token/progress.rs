//! The progress of an attempt that is running. A direct attempt has it in memory only, as its call. That of a queued attempt is
//! saved with its token, because the object may leave memory meanwhile, but not with every heartbeat, because rows cost.

use serde::{Deserialize, Serialize};

use crate::base::limits::{ID_LENGTH, ROW_BYTES, STEPS};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::protocol::task::{Artifact, StepProgress};
use crate::run::state::Run;
use crate::run::token::{Lane, TokenId, TokenStatus};
use crate::task::partial::{ARTIFACTS_BYTES, bounded_to};

/// The texts of all tokens of a run together. Each gets its share of it.
const RUN_TEXT_BYTES: usize = 8 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// When it arrived.
    pub at: Millis,
    pub step_ref: String,
    /// From 0.
    pub step_index: u32,
    pub steps_total: u32,
    /// The call of the step, from 1.
    pub attempt: u32,
    /// The results of finished steps, and the text that has arrived of the step under way.
    #[serde(default)]
    pub partial: Vec<Artifact>,
    /// When it was last saved with the token's row.
    #[serde(skip)]
    pub saved_at: Option<Millis>,
    /// It has changed since.
    #[serde(skip)]
    pub is_unsaved: bool,
}

impl Progress {
    fn is_same(&self, step: &StepProgress) -> bool {
        self.step_ref == step.step_ref
            && self.step_index == step.step_index
            && self.steps_total == step.steps_total
            && self.attempt == step.attempt
            && self.partial == step.partial
    }
}

impl Run {
    /// Takes over the progress of the current attempt. What an executor sends is cut to its limits.
    pub(super) fn note_progress(&mut self, id: TokenId, mut step: StepProgress) {
        let now = self.changes.now;
        let executing = self.tokens.count(TokenStatus::Executing).max(1) as usize;
        let token = self.tokens.live(id);
        let before = token.progress.as_ref();
        step = step.after(before.map(|it| it.partial.clone()).unwrap_or_default());
        step.partial.truncate(STEPS);
        truncate(&mut step.step_ref);
        for artifact in &mut step.partial {
            truncate(&mut artifact.name);
        }
        step.partial = bounded_to(step.partial, (RUN_TEXT_BYTES / executing).min(ARTIFACTS_BYTES));
        let is_saved = token.lane == Some(Lane::Queue);
        if is_saved && token.row_bytes() + json_bytes(&step.partial) > ROW_BYTES {
            step.partial = bounded_to(step.partial, 0);
        }
        if before.is_some_and(|before| before.is_same(&step)) {
            return;
        }
        let progress = Progress {
            at: now,
            step_ref: step.step_ref,
            step_index: step.step_index,
            steps_total: step.steps_total,
            attempt: step.attempt,
            partial: step.partial,
            saved_at: before.and_then(|before| before.saved_at),
            is_unsaved: true,
        };
        let epoch = token.epoch;
        self.touch(id, |token| token.progress = Some(Box::new(progress)));
        self.changes.progressed.push((id, epoch));
    }

    /// Whether the progress of a queued attempt is to be saved now. The first time counts from the beginning of the attempt:
    /// short ones cost no row.
    pub(super) fn is_progress_due(&self, id: TokenId) -> bool {
        let token = self.tokens.live(id);
        token.progress.as_ref().is_some_and(|progress| {
            let since = progress.saved_at.or(token.started_at).unwrap_or_default();
            progress.is_unsaved && self.changes.now.saturating_sub(since) >= self.settings.progress_save_ms
        })
    }
}

/// Names of steps are ids.
fn truncate(name: &mut String) {
    name.truncate(name.floor_char_boundary(ID_LENGTH));
}
