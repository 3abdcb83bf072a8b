//! The executor's secrets: which of them a call gets, where they may be sent, and their redaction in every report.

use std::fmt;

use serde_json::{Map, Value};

use crate::base::failure::Failure;
use crate::definition::action::Action;
use crate::definition::task::Task;
use crate::protocol::task::Checkpoint;
use crate::task::redact::Redactor;
use crate::task::secret_hosts::{Destination, ListedSecret, SECRETS, names_in, parse_setting};

const NOT_ALLOWED: &str = "secret_not_allowed";

/// All secrets that the executor may read.
#[derive(Default)]
pub struct SecretStore {
    /// With their values; none if the executor has no such secret.
    listed: Vec<(ListedSecret, Option<String>)>,
    /// What is wrong with the variable. No secret can be used until it is corrected.
    invalid: Option<String>,
    /// Of all secrets, not only of those that a task names: a peer may return what another task has sent.
    redactor: Redactor,
}

impl SecretStore {
    /// `setting` is the text of the executor's variable.
    pub fn new(setting: &str, value_of: impl Fn(&str) -> Option<String>) -> SecretStore {
        let redactor = Redactor::new(names_in(setting).iter().filter_map(|name| value_of(name)));
        let (listed, invalid) = match parse_setting(setting) {
            Ok(listed) => (listed, None),
            Err(message) => (Vec::new(), Some(message)),
        };
        let listed = listed.into_iter().map(|secret| {
            let value = value_of(&secret.name);
            (secret, value)
        });
        SecretStore {
            listed: listed.collect(),
            invalid,
            redactor,
        }
    }

    /// What is wrong with the executor's variable.
    pub fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The value of `secret` in the templates of an action; none if they name no secret.
    pub fn scope_of(&self, action: &Action) -> Result<Option<Value>, Failure> {
        if action.secrets.is_empty() {
            return Ok(None);
        }
        let mut values = Map::new();
        for name in &action.secrets {
            values.insert(name.clone(), self.value(name)?.into());
        }
        Ok(Some(Value::Object(values)))
    }

    pub(super) fn value(&self, name: &str) -> Result<&str, Failure> {
        let refused = |message| Err(Failure::permanent(NOT_ALLOWED, message));
        if let Some(invalid) = &self.invalid {
            return refused(format!(
                "the executor's variable {SECRETS} is invalid, so the secret \"{name}\" cannot be used: {invalid}"
            ));
        }
        match self.listed.iter().find(|(secret, _)| secret.name == name) {
            Some((_, Some(value))) => Ok(value),
            Some((_, None)) => refused(format!(
                "the executor has no secret \"{name}\", although its variable {SECRETS} lists it"
            )),
            None => refused(format!(
                "the executor may not read the secret \"{name}\": its variable {SECRETS} does not list it"
            )),
        }
    }

    pub(super) fn check(&self, name: &str, destination: Destination) -> Result<(), Failure> {
        let mut listed = self.listed.iter().map(|(secret, _)| secret);
        let Some(secret) = listed.find(|secret| secret.name == name) else {
            // The call has no value of it.
            return Ok(());
        };
        if secret.may_go_to(destination) {
            return Ok(());
        }
        let (place, entry) = match destination {
            Destination::Url(url) => {
                let host = url.host_str().unwrap_or_default();
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                (format!("\"{host}{port}\""), host.to_string())
            }
            Destination::Binding(binding) => {
                (format!("the binding \"{binding}\""), format!("binding:{binding}"))
            }
        };
        Err(Failure::permanent(
            NOT_ALLOWED,
            format!(
                "the secret \"{name}\" may not be sent to {place}: the executor's variable {SECRETS} binds it to other hosts; if it \
                 may, add \"{entry}\" to them"
            ),
        ))
    }

    pub(super) fn redact_failure(&self, failure: &mut Failure) {
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

/// Never the values.
impl fmt::Debug for SecretStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretStore")
    }
}

/// The secrets that one call may hold.
#[derive(Clone, Copy, Debug)]
pub struct CallSecrets<'a> {
    pub store: &'a SecretStore,
    pub action: &'a Action,
    pub task: &'a Task,
}

impl<'a> CallSecrets<'a> {
    pub fn redactor(self) -> &'a Redactor {
        &self.store.redactor
    }

    /// Refuses a request to a place where a secret of this call may not go. What the request holds does not matter: it is enough
    /// that the action names the secret, or that the task may have it in its context, as in documents of earlier builds.
    pub fn check(self, destination: Destination) -> Result<(), Failure> {
        let names = self.action.secrets.iter().chain(self.task.context_secrets());
        names
            .into_iter()
            .try_for_each(|name| self.store.check(name, destination))
    }
}
