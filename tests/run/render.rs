//! Effects, rejections and failures as the short lines scenarios are written in.
//!
//! The only place of these tests that matches on every effect, so that a new one is a compile error here and nowhere
//! else.

use curfew::base::failure::Failure;
use curfew::run::{Effect, GONE, GateState, Header, Instance, Message, Rejection, Run, RunEvent, Token};
use serde_json::{Value, json};

pub fn render_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::StaleAttempt { token, epoch } => format!("stale_attempt {token}@{epoch}"),
        Rejection::NotParent { run_id } => format!("rejected: {run_id} is not the parent"),
        Rejection::NotChild { run_id } => format!("rejected: {run_id} is not the child"),
        Rejection::RunFinished => "run_finished".into(),
        Rejection::Paused => "paused".into(),
        Rejection::NotPaused => "not_paused".into(),
        Rejection::PausedFor { holder, gate } => {
            format!("held_by {} {}", holder.name(), gate.as_deref().unwrap_or("-"))
        }
        Rejection::CannotExtend(status) => format!("cannot_extend {}", word(status)),
        Rejection::LimitOfParent => "limit_of_parent".into(),
        Rejection::NoDeadline => "no_deadline".into(),
        Rejection::InvalidExtension { message, .. } => format!("invalid_extension {message}"),
        Rejection::NotEnded => "not_ended".into(),
        Rejection::NotResumable(why) => format!("not_resumable {why}"),
        Rejection::UnknownCallback => "unknown_callback".into(),
        Rejection::UnknownGate => "unknown_gate".into(),
        Rejection::GateClosed(gate) => format!("closed {}", render_gate(gate)),
        Rejection::InvalidDecision { pointer, message } => format!("invalid_decision {pointer}: {message}"),
        Rejection::TooManySignals => "too_many_signals".into(),
        Rejection::TooLarge(it) => format!("too_large: {it}"),
        Rejection::NoWayBack(why) => format!("no_way_back {why}"),
    }
}

pub fn render(effect: &Effect, run: &Run) -> String {
    match effect {
        Effect::SaveSnapshot(_) => "snapshot".into(),
        Effect::SaveInput(input) => format!("input {input}"),
        Effect::SaveRun(header) => render_header(header),
        Effect::SaveContext { key, text } if text == GONE => format!("context {key} gone"),
        Effect::SaveContext { key, text } => format!("context {key} = {text}"),
        Effect::DeleteContext { key } => format!("uncontext {key}"),
        Effect::SaveToken(token) => render_token(token, run),
        Effect::SaveInstance(instance) => render_instance(instance, run),
        Effect::SaveGate(gate) => render_gate(gate),
        Effect::SaveEvent(entry) => render_entry(entry),
        Effect::AnnounceLatency {
            node_id,
            token,
            millis,
        } => format!("latency {node_id} {token} {millis}"),
        Effect::SaveSignals { name, payloads } => format!("signals {name} = {}", json!(payloads)),
        Effect::SaveMessage { id, message } => format!("message {id} {}", render_message(message)),
        Effect::DeleteMessage { id } => format!("unmessage {id}"),
        Effect::ForgetFailedWakes => "forget failed wakes".to_string(),
        Effect::Deliver { id, message } => format!("deliver {id} {}", render_message(message)),
        Effect::AnnounceGate(gate) => format!("announce {} {}", gate.id, word(&gate.status)),
        Effect::SetAlarm(at) => format!("alarm {at}"),
        Effect::DeleteStorage => "delete".into(),
        Effect::Dispatch(order) => {
            let deadline = order
                .deadline_at
                .map(|at| format!(" by {at}"))
                .unwrap_or_default();
            format!(
                "dispatch {}@{} {}{deadline}",
                order.token, order.epoch, order.input
            )
        }
        Effect::Enqueue { token, epoch } => format!("enqueue {token}@{epoch}"),
        Effect::Hand(order) => {
            let deadline = order
                .deadline_at
                .map(|at| format!(" by {at}"))
                .unwrap_or_default();
            format!("hand {}@{} {}{deadline}", order.token, order.epoch, order.input)
        }
        Effect::Abort { token, epoch } => format!("abort {token}@{epoch}"),
        Effect::Announce => "announce".into(),
        Effect::RunEnded => "ended".into(),
    }
}

/// What happened and to whom; of a timeout also whose clock it was, how late, and what followed.
fn render_entry(entry: &RunEvent) -> String {
    let mut line = format!("event {} {}", entry.seq, word(&entry.kind));
    for field in [
        "token_id",
        "node_id",
        "by",
        "deadline",
        "retry_count",
        "delay_ms",
        "by_ms",
        "mode",
        "limit",
    ] {
        match entry.fields.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => line += &format!(" {text}"),
            Some(value) => line += &format!(" {field} {value}"),
        }
    }
    if let Some(record) = &entry.record {
        line += &format!(
            " {{{} late {} {}}}",
            word(&record.timeout_event.scope),
            record.timeout_event.lateness_ms,
            word(&record.final_action)
        );
    }
    line
}

fn render_instance(instance: &Instance, run: &Run) -> String {
    let workflow = &run.snapshot().workflow;
    let mut line = format!(
        "instance {} {} of {}",
        instance.id.0, instance.group, instance.total
    );
    for (node, fan_in) in &instance.fan_ins {
        line += &format!(" join {} from {}", workflow.nodes[*node].id, fan_in.started_at);
        if let Some(at) = fan_in.timeout_at {
            line += &format!(" until {at}");
        }
        if let Some(at) = fan_in.fired_at {
            line += &format!(" fired {at}");
        }
    }
    if instance.closed {
        line += " closed";
    }
    line
}

fn render_gate(gate: &GateState) -> String {
    let mut line = format!(
        "gate {} {} {} {}",
        gate.id,
        word(&gate.status),
        gate.prompt,
        gate.choices.join("|")
    );
    if let Some(at) = gate.timeout_at {
        line += &format!(" until {at}");
    }
    if let Some(at) = gate.reminded_at {
        line += &format!(" reminded {at}");
    }
    if let Some(decision) = &gate.decision {
        let by = decision.by.as_deref().unwrap_or("nobody");
        line += &format!(" {} by {by} at {}", decision.choice, decision.at);
    }
    line
}

fn render_message(message: &Message) -> String {
    match message {
        Message::StartChild {
            run_id,
            input,
            timeout_ms,
            budget_ms,
            ..
        } => {
            let mut line = format!("start {run_id} {input}");
            if let Some(millis) = timeout_ms {
                line += &format!(" within {millis}");
            }
            if let Some(millis) = budget_ms {
                line += &format!(" budget {millis}");
            }
            line
        }
        Message::HoldChild {
            run_id,
            number,
            held,
            budget_ms,
            ..
        } => {
            let word = if *held { "hold" } else { "release" };
            let budget = budget_ms
                .map(|millis| format!(" budget {millis}"))
                .unwrap_or_default();
            format!("{word} {run_id} #{number}{budget}")
        }
        Message::TellParent { run_id, news } => {
            let word = if news.paused { "paused" } else { "goes on" };
            format!(
                "tell {run_id} {}@{} {word} #{}",
                news.token_id, news.epoch, news.number
            )
        }
        Message::Emit {
            key,
            name,
            payload,
            hops,
            after,
            ..
        } => {
            let after = after
                .as_ref()
                .map(|it| format!(" after {it}"))
                .unwrap_or_default();
            format!("emit {name} {payload} as {key} hops {hops}{after}")
        }
        Message::CancelChild { run_id, reason, .. } => format!("cancel {run_id} ({reason})"),
        Message::NotifyParent { run_id, report } => {
            let mut line = format!(
                "notify {run_id} {}@{} {}",
                report.token_id,
                report.epoch,
                word(&report.status)
            );
            if let Some(output) = &report.output {
                line += &format!(" {output}");
            }
            line + &render_failure(report.error.as_ref())
        }
    }
}

fn render_header(header: &Header) -> String {
    let mut line = format!("run {}", word(&header.status));
    if let Some(at) = header.timeout_at.filter(|_| header.ended_at.is_none()) {
        line += &format!(" until {at}");
    }
    for holder in &header.pause_reasons {
        line += &format!(" held by {}", holder.name());
    }
    if let Some(output) = &header.output {
        line += &format!(" {output}");
    }
    if let Some(reason) = &header.reason {
        line += &format!(" ({reason})");
    }
    line + &render_failure(header.error.as_ref())
}

fn render_token(token: &Token, run: &Run) -> String {
    let node = &run.snapshot().workflow.nodes[token.node].id;
    let mut line = format!(
        "token {} {node} {}@{}",
        token.id,
        token.status.name(),
        token.epoch
    );
    if let Some(branch) = &token.branch {
        line += &format!(" [{}.{}]", branch.instance.0, branch.index);
    }
    if token.retry_count > 0 {
        line += &format!(" retry {}", token.retry_count);
    }
    if token.lost_count > 0 {
        line += &format!(" lost {}", token.lost_count);
    }
    if !token.status.is_terminal() {
        if let Some(at) = token.timeout_at {
            line += &format!(" until {at}");
        }
        if let Some(at) = token.watch_at {
            line += &format!(" watch {at}");
        }
    }
    if let Some(reason) = &token.reason {
        line += &format!(" ({reason})");
    }
    if let Some(output) = &token.output {
        // A result as large as its limit would say nothing but its size.
        let text = output.to_string();
        line += &match text.len() {
            0..=1_000 => format!(" {text}"),
            bytes => format!(" ({bytes} bytes)"),
        };
    }
    for (name, value) in &token.context_on_token {
        line += &format!(" keeps {name}");
        if let Some(value) = value {
            line += &format!(" = {value}");
        }
    }
    line + &render_failure(token.error.as_ref())
}

pub fn render_failure(failure: Option<&Failure>) -> String {
    match failure {
        None => String::new(),
        Some(failure) => format!(" {}/{}: {}", failure.code, word(&failure.class), failure.message),
    }
}

/// The name an enum goes by on the wire.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        other => panic!("{other:?} is no word"),
    }
}
