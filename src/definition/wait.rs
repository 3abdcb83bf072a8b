//! Nodes that wait: for a person's decision, for a duration, until a point in time, or for a signal.

use serde_json::Value;

use crate::base::ids;
use crate::base::time::Limit;
use crate::cel::Template;
use crate::definition::reader::Reader;
use crate::json_schema::Schema;

/// A decision that a person makes.
#[derive(Clone, Debug)]
pub struct Gate {
    pub prompt: Option<Template>,
    pub choices: Vec<String>,
    pub input_schema: Option<Schema>,
    /// The document of `input_schema`, for clients that show the gate.
    pub input_schema_document: Option<Value>,
    pub timeout: Limit,
    pub on_timeout: GateTimeoutPolicy,
    /// Fractions of the timeout at which reminders are sent, in ascending order.
    pub remind_at: Vec<f64>,
    /// The caller that started the run may not decide.
    pub four_eyes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateTimeoutPolicy {
    Fail,
    Approve,
    Reject,
    CancelAll,
}

#[derive(Clone, Debug)]
pub enum Wait {
    Sleep {
        millis: u64,
    },
    /// Unix milliseconds or ISO 8601.
    Until(Template),
    Signal {
        name: String,
        timeout: Limit,
        on_timeout: SignalTimeoutPolicy,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalTimeoutPolicy {
    Fail,
    Continue,
}

pub fn read_gate(reader: Reader, names: &[&str]) -> Gate {
    let prompt = reader.template("prompt", names);
    let mut choices = Vec::new();
    for element in reader.array("choices") {
        match element.value.as_str() {
            Some(choice)
                if !choice.is_empty()
                    && choice.len() <= 64
                    && !choices.iter().any(|other| other == choice) =>
            {
                choices.push(choice.to_string());
            }
            Some(_) | None => reader.problems().report(
                &element.pointer,
                "wrong_type",
                "a choice is a string of 1-64 bytes, each one once",
            ),
        }
    }
    if !reader.has("choices") {
        choices = vec!["approve".into(), "reject".into()];
    } else if choices.is_empty() {
        reader.report("choices", "missing_field", "a gate needs at least one choice");
    }
    let on_timeout = reader.choice(
        "on_timeout",
        &[
            ("fail", GateTimeoutPolicy::Fail),
            ("approve", GateTimeoutPolicy::Approve),
            ("reject", GateTimeoutPolicy::Reject),
            ("cancel_all", GateTimeoutPolicy::CancelAll),
        ],
    );
    for (policy, choice) in [
        (GateTimeoutPolicy::Approve, "approve"),
        (GateTimeoutPolicy::Reject, "reject"),
    ] {
        if on_timeout == Some(policy) && !choices.iter().any(|other| other == choice) {
            reader.report(
                "on_timeout",
                "invalid_choice",
                format!("\"{choice}\" is not among the gate's choices"),
            );
        }
    }
    let input_schema = reader.schema("input_schema");
    let input_schema_document = reader.value("input_schema").cloned();
    let timeout = reader.limit("timeout", "timeout_ms");
    let remind_at = read_fractions(&reader);
    let four_eyes = reader.boolean("four_eyes").unwrap_or(false);
    reader.finish();
    Gate {
        prompt,
        choices,
        input_schema,
        input_schema_document,
        timeout,
        on_timeout: on_timeout.unwrap_or(GateTimeoutPolicy::Fail),
        remind_at,
        four_eyes,
    }
}

fn read_fractions(reader: &Reader) -> Vec<f64> {
    if !reader.has("remind_at") {
        return vec![0.75];
    }
    let mut fractions = Vec::new();
    for element in reader.array("remind_at") {
        match element
            .value
            .as_f64()
            .filter(|fraction| *fraction > 0.0 && *fraction < 1.0)
        {
            Some(fraction) => fractions.push(fraction),
            None => reader.problems().report(
                &element.pointer,
                "out_of_range",
                "a reminder is a fraction of the timeout between 0 and 1",
            ),
        }
    }
    fractions.sort_by(f64::total_cmp);
    fractions
}

pub fn read_wait(reader: Reader, names: &[&str]) -> Option<Wait> {
    let sleep = reader.limit("sleep", "sleep_ms");
    let until = reader.template("until", names);
    let signal = reader.string("signal");
    let timeout = reader.limit("timeout", "timeout_ms");
    let on_timeout = reader.choice(
        "on_timeout",
        &[
            ("fail", SignalTimeoutPolicy::Fail),
            ("continue", SignalTimeoutPolicy::Continue),
        ],
    );
    let forms = [sleep != Limit::Unset, reader.has("until"), signal.is_some()];
    let code = match forms.into_iter().filter(|is_present| *is_present).count() {
        0 => Some("missing_field"),
        1 => None,
        _ => Some("both_forms"),
    };
    if let Some(code) = code {
        let message = "a wait has exactly one of \"sleep_ms\" (or \"sleep\"), \"until\" and \"signal\"";
        reader.problems().report(reader.pointer(), code, message);
    }
    if signal.is_none() && (timeout != Limit::Unset || on_timeout.is_some()) {
        reader.report(
            "timeout",
            "unknown_field",
            "only a wait for a signal has a timeout",
        );
    }
    let wait = match (sleep.millis(), until, signal) {
        (Some(millis), _, _) => Some(Wait::Sleep { millis }),
        (None, Some(until), _) => Some(Wait::Until(until)),
        (None, None, Some(name)) if ids::is_name(name) => Some(Wait::Signal {
            name: name.to_string(),
            timeout,
            on_timeout: on_timeout.unwrap_or(SignalTimeoutPolicy::Fail),
        }),
        (None, None, Some(_)) => {
            reader.report(
                "signal",
                "invalid_id",
                "a signal's name is 1-128 characters of A-Z, a-z, 0-9, -, _ and .",
            );
            None
        }
        (None, None, None) => None,
    };
    reader.finish();
    wait
}
