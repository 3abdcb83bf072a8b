//! `shell`: the request to a runner, and the meaning of its response. Pure; `shell_client` sends it.

use serde_json::{Map, Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::ordered::object_of;
use crate::base::time::Millis;
use crate::definition::shell::{Runner, Shell};
use crate::task::context::plain;
use crate::task::redact::Redactor;
use crate::task::request::{Outgoing, object, parse_url, render, text};
use crate::task::runtime::ActionCall;

/// How much earlier than the call a runner ends its command, so that the output of the command still arrives.
const REPORT_MS: u64 = 250;

/// How much of the end of each output a message quotes. Commands print their errors last.
const QUOTED_CHARACTERS: usize = 1_000;

/// How a command ended.
#[derive(Debug, PartialEq)]
pub enum CommandEnd {
    Result(Value),
    /// It was stopped at the deadline of the call, after it had written this text.
    OutOfTime(String),
}

pub fn order(shell: &Shell, call: &ActionCall, key: &str, now: Millis) -> Result<Outgoing, Failure> {
    let scope = call.scope;
    let url = match &shell.runner {
        Runner::Url(url) => parse_url(&text(url, scope, "url")?)?,
        // The binding selects the Worker; the host is not used.
        Runner::Binding(_) => parse_url("http://runner/")?,
    };
    let rendered = |template: &Option<_>, field| match template {
        Some(template) => render(template, scope, field),
        None => Ok(Value::Null),
    };
    let env = match rendered(&shell.env, "env")? {
        Value::Null => Map::new(),
        other => object(other, "env")?,
    };
    let env = env.into_iter().filter(|(_, value)| !value.is_null());
    let env: Map<String, Value> = object_of(env.map(|(name, value)| (name, plain(value).into())));
    let args = match rendered(&shell.args, "args")? {
        Value::Null => Vec::new(),
        Value::Array(args) => args,
        other => return Err(wrong_type("args must be an array", &other)),
    };
    // A null argument is left out, like a null header or query parameter.
    let args = args.into_iter().filter(|arg| !arg.is_null());
    let args: Vec<Value> = args.map(|arg| plain(arg).into()).collect();
    let cwd = match rendered(&shell.cwd, "cwd")? {
        cwd @ (Value::Null | Value::String(_)) => cwd,
        other => return Err(wrong_type("cwd must be a string", &other)),
    };
    let stdin = match rendered(&shell.stdin, "stdin")? {
        Value::Null => Value::Null,
        other => plain(other).into(),
    };
    let body = json!({
        "command": text(&shell.command, scope, "command")?,
        "args": args,
        "env": env,
        "cwd": cwd,
        "stdin": stdin,
        "timeout_ms": call.deadline_at.map(|at| time_for(at.saturating_sub(now))),
    });
    Outgoing::new(url, "POST", shell.headers.as_ref(), body, scope, key)?.traced_by(call)
}

/// The part of the call's time that the command gets: at least nine tenths.
fn time_for(left_ms: u64) -> u64 {
    left_ms - REPORT_MS.min(left_ms / 10)
}

/// `left_ms` is the time that the call has left when the response has arrived.
pub fn outcome(
    shell: &Shell,
    answer: &str,
    redactor: &Redactor,
    left_ms: Option<u64>,
) -> Result<CommandEnd, Failure> {
    let answer: Value =
        serde_json::from_str(answer).map_err(|error| invalid(&format!("no JSON: {error}")))?;
    let (Some(stdout), Some(stderr)) = (answer["stdout"].as_str(), answer["stderr"].as_str()) else {
        return Err(invalid("an answer without stdout and stderr"));
    };
    // Redacted before anything is cut or joined: half a secret would not be found.
    let is_whole = answer["truncated"] != true && answer["timed_out"] != true;
    let clean = |output: &str| match is_whole {
        true => redactor.text(output.to_string()),
        false => redactor.cut_text(output.to_string()),
    };
    let (stdout, stderr) = (clean(stdout), clean(stderr));
    if answer["timed_out"] == true {
        if left_ms.is_some_and(|left| left <= REPORT_MS) {
            return Ok(CommandEnd::OutOfTime(format!("{stdout}{stderr}")));
        }
        let message = "the runner stopped the command at a limit of its own";
        let message = with_output(message, &stdout, &stderr);
        return Err(Failure::new("runner_timeout", FailureClass::Timeout, message));
    }
    let Some(exit_code) = answer["exit_code"].as_i64() else {
        let message = match answer["signal"].as_str() {
            Some(signal) => format!("the command was ended by {}", start_of(signal)),
            None => return Err(invalid("an answer without exit_code")),
        };
        let message = with_output(&message, &stdout, &stderr);
        return Err(Failure::permanent("killed", message));
    };
    let expected = shell.expect_exit.as_deref().unwrap_or(&[0]);
    if !expected.iter().any(|code| i64::from(*code) == exit_code) {
        let message = format!("the command ended with exit code {exit_code}");
        let message = with_output(&message, &stdout, &stderr);
        return Err(Failure::permanent("exit_code", message));
    }
    Ok(CommandEnd::Result(json!({
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": answer["truncated"] == true,
    })))
}

fn with_output(message: &str, stdout: &str, stderr: &str) -> String {
    let mut message = message.to_string();
    for (name, output) in [("stderr", stderr), ("stdout", stdout)] {
        let output = output.trim();
        if output.is_empty() {
            continue;
        }
        let skipped = output.chars().count().saturating_sub(QUOTED_CHARACTERS);
        let end: String = output.chars().skip(skipped).collect();
        let cut = if skipped > 0 { "..." } else { "" };
        message += &format!("; {name}: {cut}{end}");
    }
    message
}

fn start_of(text: &str) -> String {
    text.chars().take(20).collect()
}

fn wrong_type(what: &str, found: &Value) -> Failure {
    Failure::validation("wrong_type", format!("{what}, found {found}"))
}

fn invalid(what: &str) -> Failure {
    Failure::validation("invalid_response", format!("the runner sent {what}"))
}
