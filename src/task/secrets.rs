//! The secrets of one task: which it names, which of them the executor may read, and their redaction in its report.

use serde_json::{Map, Value};

use crate::base::failure::Failure;
use crate::definition::action::Action;
use crate::definition::step::StepAction;
use crate::definition::task::Task;
use crate::protocol::task::Checkpoint;
use crate::task::redact::Redactor;
use crate::task::runtime::Runtime;

/// The executor's variable that lists the secrets it may read.
pub const SECRETS: &str = "CURFEW_SECRETS";

/// Why a secret has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    NotListed,
    NotSet,
}

#[derive(Debug, Default)]
pub struct Secrets {
    known: Vec<(String, Result<String, Missing>)>,
    redactor: Redactor,
}

impl Secrets {
    /// Reads the secrets of all steps, also of those that do not run: a secret that an earlier attempt sent may come back.
    pub fn of(task: &Task, world: &impl Runtime) -> Secrets {
        let mut known: Vec<(String, Result<String, Missing>)> = Vec::new();
        for step in &task.steps {
            let StepAction::Inline(action) = &step.action else {
                continue;
            };
            for name in &action.secrets {
                if !known.iter().any(|(other, _)| other == name) {
                    known.push((name.clone(), world.secret(name)));
                }
            }
        }
        let values = known.iter().filter_map(|(_, value)| value.clone().ok());
        let redactor = Redactor::new(values);
        Secrets { known, redactor }
    }

    /// The value of `secret` in the templates of an action; none if they name no secret.
    pub fn scope_of(&self, action: &Action) -> Result<Option<Value>, Failure> {
        if action.secrets.is_empty() {
            return Ok(None);
        }
        let mut values = Map::new();
        for name in &action.secrets {
            let known = self.known.iter().find(|(other, _)| other == name);
            let value = known.map_or(Err(Missing::NotListed), |(_, value)| value.clone());
            match value {
                Ok(value) => values.insert(name.clone(), value.into()),
                Err(missing) => return Err(refusal(name, missing)),
            };
        }
        Ok(Some(Value::Object(values)))
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub fn redact_failure(&self, failure: &mut Failure) {
        failure.message = self.redactor.message(std::mem::take(&mut failure.message));
    }

    pub(super) fn redact_checkpoint(&self, checkpoint: &mut Checkpoint) {
        for part in [
            &mut checkpoint.state,
            &mut checkpoint.output,
            &mut checkpoint.last_result,
        ] {
            *part = self.redactor.value(part.take());
        }
    }
}

fn refusal(name: &str, missing: Missing) -> Failure {
    let message = match missing {
        Missing::NotListed => {
            format!(
                "the executor may not read the secret \"{name}\": its variable {SECRETS} does not list it"
            )
        }
        Missing::NotSet => {
            format!("the executor has no secret \"{name}\", although its variable {SECRETS} lists it")
        }
    };
    Failure::permanent("secret_not_allowed", message)
}

/// The names in the executor's variable: a JSON array, or separated by commas.
pub fn listed_names(variable: &str) -> Vec<String> {
    let variable = variable.trim();
    if variable.starts_with('[') {
        // An invalid list allows nothing.
        return serde_json::from_str(variable).unwrap_or_default();
    }
    let names = variable.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_either_way() {
        for (variable, names) in [
            ("", ""),
            ("A", "A"),
            (" A, B_2 ,,C ", "A B_2 C"),
            (r#" ["A", "B"] "#, "A B"),
            (r#"["A", 1]"#, ""),
            ("[A", ""),
        ] {
            assert_eq!(listed_names(variable).join(" "), names, "{variable}");
        }
    }
}
