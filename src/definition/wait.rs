//! Nodes that wait: for a person's decision, for a duration, until a point in time, or for a signal.

use serde_json::Value;

use crate::base::ids;
use crate::base::time::{Limit, parse_moment};
use crate::cel::{Template, TextPart};
use crate::definition::problem::UNKNOWN_FIELD;
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
    Sleep(SleepLength),
    /// Unix milliseconds or ISO 8601.
    Until(Template),
    Signal {
        name: String,
        timeout: Limit,
        on_timeout: SignalTimeoutPolicy,
    },
}

#[derive(Clone, Debug)]
pub enum SleepLength {
    Millis(u64),
    /// One `${...}`, evaluated when a token comes to the wait: milliseconds or a duration.
    Computed(Template),
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
    } else if choices.is_empty() && !reader.problems().has_errors_in(&reader.pointer_of("choices")) {
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
    let sleep = read_sleep(&reader, names);
    let until = read_until(&reader, names);
    let signal = reader.string("signal");
    reader
        .problems()
        .report_dots(&reader.pointer_of("signal"), signal.unwrap_or_default());
    let timeout = reader.limit("timeout", "timeout_ms");
    let on_timeout = reader.choice(
        "on_timeout",
        &[
            ("fail", SignalTimeoutPolicy::Fail),
            ("continue", SignalTimeoutPolicy::Continue),
        ],
    );
    let forms = [
        reader.is_written("sleep") || reader.is_written("sleep_ms"),
        reader.has("until"),
        signal.is_some(),
    ];
    let code = match forms.into_iter().filter(|is_present| *is_present).count() {
        0 => Some("missing_field"),
        1 => None,
        _ => Some("both_forms"),
    };
    if let Some(code) = code {
        let message = "a wait has exactly one of \"sleep_ms\" (or \"sleep\"), \"until\" and \"signal\"";
        reader.problems().report(reader.pointer(), code, message);
    }
    for field in ["timeout", "timeout_ms", "on_timeout"] {
        if signal.is_none() && reader.has(field) {
            let message = format!("\"{field}\" means nothing here: only a wait for a signal can time out");
            reader.report(field, UNKNOWN_FIELD, message);
        }
    }
    let wait = match (sleep, until, signal) {
        (Some(length), _, _) => Some(Wait::Sleep(length)),
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

fn read_sleep(reader: &Reader, names: &[&str]) -> Option<SleepLength> {
    let field = reader.limit_field("sleep", "sleep_ms");
    let is_single = reader.is_written("sleep") != reader.is_written("sleep_ms");
    let computed = reader.value(field).and_then(Value::as_str);
    if is_single && computed.is_some_and(|text| text.contains("${")) {
        // Both names are known, also where only one of them is read.
        reader.value("sleep");
        reader.value("sleep_ms");
        let template = reader.template(field, names)?;
        return match template.text_parts().as_slice() {
            [TextPart::Expression(_)] => Some(SleepLength::Computed(template)),
            _others => {
                let message = "a computed sleep is one ${...} and nothing around it; make text inside it, like \
                     \"${string(state.minutes) + \"m\"}\"";
                reader.report(field, "invalid_expression", message);
                None
            }
        };
    }
    match reader.limit("sleep", "sleep_ms") {
        Limit::After(millis) => Some(SleepLength::Millis(millis)),
        Limit::Never => {
            let message =
                "a sleep has an end; wait for a signal where only an event from outside ends the wait";
            reader.report(field, "missing_field", message);
            None
        }
        Limit::Unset => None,
    }
}

/// A constant moment is parsed when the document is stored, a computed one when a token comes to the wait.
fn read_until(reader: &Reader, names: &[&str]) -> Option<Template> {
    let template = reader.template("until", names)?;
    let value = reader.value("until")?;
    let can_be_moment = value.is_string() || value.is_number();
    // Snapshots of earlier builds may have any constant. Such a token fails when it comes there.
    let is_checked_now = (template.is_constant() || !can_be_moment) && !reader.problems().is_prechecked();
    if let Some(message) = parse_moment(value).err().filter(|_| is_checked_now) {
        reader.report("until", "invalid_moment", message);
    }
    Some(template)
}
