//! Progress of attempts, by connections and with the heartbeats of consumers: early, late, twice, out of order, and of attempts
//! that do not count any more. It names its attempt, so that the progress of another one would be noticed.

use curfew::host::Attempt;
use curfew::protocol::task::{Artifact, PROGRESS_LINE, StepProgress, TaskProgress};
use curfew::run::{Run, TokenId};
use curfew::simulate::{ConnectionId, InFlight, Store};
use serde_json::{Value, json};

use super::environment::Environment;

fn name_of(run: &str, attempt: Attempt) -> String {
    format!("{run}/{}@{}", attempt.0, attempt.1)
}

fn artifact(name: &str, text: String) -> Artifact {
    Artifact {
        name: name.into(),
        complete: false,
        bytes: text.len() as u64,
        text,
    }
}

impl Environment {
    /// The progress of an attempt at some moment; its text is of any length.
    pub fn progress_of(&self, run: &str, attempt: Attempt) -> StepProgress {
        let words = self.pick(&[1, 3, 2_000]);
        let text = " and so on".repeat(words);
        StepProgress {
            step_ref: "ask".into(),
            step_index: self.below(3) as u32,
            steps_total: 3,
            attempt: 1 + self.below(2) as u32,
            keep: 0,
            partial: vec![artifact("plan", name_of(run, attempt)), artifact("ask", text)],
        }
    }

    /// An executor sends its progress while it works, and some of it arrives after its report.
    pub fn send_progress(&self, connection: &ConnectionId, attempt: Attempt, delay: u64) {
        let copies = self.pick(&[0, 0, 1, 2]);
        for copy in 0..copies {
            let mut progress = self.progress_of(&connection.run, attempt);
            if copy > 0 && self.chance(50) {
                // A change of what came before; or of nothing, if that came later.
                progress.keep = 1;
                progress.partial.remove(0);
            }
            let progress = TaskProgress {
                token_id: attempt.0.to_string(),
                epoch: attempt.1,
                progress,
            };
            let line = format!("{PROGRESS_LINE}{}", json!(progress));
            let connection = connection.clone();
            self.post(
                self.below(delay + delay / 4 + 1),
                InFlight::Progress { connection, line },
            );
        }
    }
}

/// The progress of a token is that of its attempt.
pub fn check_progress(run: &Run) {
    for token in run.live_tokens() {
        let Some(progress) = &token.progress else { continue };
        let own = name_of(&run.header.id, (token.id, token.epoch));
        let names = progress.partial.iter().filter(|it| it.name == "plan");
        for name in names {
            assert!(own.starts_with(&name.text), "{} on {own}", name.text);
        }
    }
}

/// The progress that watchers of the run are sent is of a token that is executing, according to its row.
pub fn check_published(store: &Store, line: &str) {
    let view = line.strip_prefix("- progress ").expect("a line of progress");
    let view: Value = serde_json::from_str(view).expect("progress is JSON");
    let token = view["token_id"].as_str().and_then(TokenId::parse);
    let (status, row) = &store.tokens[&token.expect("an id").0];
    let row: Value = serde_json::from_str(row).expect("a row is JSON");
    assert_eq!(
        (status.as_str(), &row["epoch"]),
        ("executing", &view["epoch"]),
        "{line}"
    );
    assert!(
        view["step_ref"].is_string() && view["partial"].is_array(),
        "{line}"
    );
}
