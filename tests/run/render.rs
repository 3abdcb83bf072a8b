//! Renders decisions, rejections and failures as the short lines that scenarios compare.
//!
//! The only place of these tests that matches on every write and command, so that a new one is a compile error here
//! and nowhere else.

use curfew::base::failure::Failure;
use curfew::run::{
    AttemptOrder, Command, Decision, GONE, GateState, Header, Instance, Message, Notification, Rejection,
    Run, RunEvent, Token, Write,
};
use serde_json::{Value, json};

pub fn render_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::StaleAttempt { token, epoch } => format!("stale_attempt {token}@{epoch}"),
        Rejection::NotParent { run_id } => format!("rejected: {run_id} is not the parent"),
        Rejection::NotChild { run_id } => format!("rejected: {run_id} is not the child"),
        Rejection::RunFinished => "run_finished".into(),
        Rejection::Ending => "ending".into(),
        Rejection::Paused => "paused".into(),
        Rejection::NotPaused => "not_paused".into(),
        Rejection::PausedFor { holder, gate } => {
            format!("held_by {} {}", holder.name(), gate.as_deref().unwrap_or("-"))
        }
        Rejection::CannotExtend(status) => format!("cannot_extend {}", wire_name(status)),
        Rejection::LimitOfParent => "limit_of_parent".into(),
        Rejection::NoDeadline => "no_deadline".into(),
        Rejection::InvalidExtension { message, .. } => format!("invalid_extension {message}"),
        Rejection::NotEnded => "not_ended".into(),
        Rejection::NotResumable(why) => format!("not_resumable {why}"),
        Rejection::UnknownCallback => "unknown_callback".into(),
        Rejection::UnknownGate => "unknown_gate".into(),
        Rejection::FourEyes(why) => format!("four_eyes {why:?}"),
        Rejection::GateClosed(gate) => format!("closed {}", render_gate(gate)),
        Rejection::InvalidDecision { pointer, message } => format!("invalid_decision {pointer}: {message}"),
        Rejection::UnknownSignal { name, known } => format!("unknown_signal {name}: {}", known.join(", ")),
        Rejection::TooManySignals => "too_many_signals".into(),
        Rejection::TooLarge(it) => format!("too_large: {it}"),
        Rejection::VersionDoesNotFit { version, misfits } => {
            let mut line = format!("version_does_not_fit {version}");
            for misfit in misfits {
                let node_id = misfit.node_id.as_deref().unwrap_or("-");
                let token = misfit.token.map_or_else(String::new, |token| format!(" {token}"));
                line += &format!("; {node_id}{token}: {}", misfit.reason);
            }
            line
        }
        Rejection::NoWayBack(why) => format!("no_way_back {why}"),
    }
}

/// One line per write, the alarm, one line per command.
pub fn render(decision: &Decision, run: &Run) -> Vec<String> {
    let (writes, alarm, commands) = match decision {
        Decision::Update {
            writes,
            alarm,
            commands,
        } => (writes, alarm, commands),
        Decision::DeleteStorage => return vec!["delete".into()],
    };
    let mut lines: Vec<String> = writes.iter().map(|write| render_write(write, run)).collect();
    lines.extend(alarm.map(|at| format!("alarm {at}")));
    lines.extend(commands.iter().map(render_command));
    lines
}

fn render_write(write: &Write, run: &Run) -> String {
    match write {
        Write::SaveSnapshot(_) => "snapshot".into(),
        Write::SaveInput(input) => format!("input {input}"),
        Write::SaveRun(header) => render_header(header),
        Write::SaveContext { key, text } if text == GONE => format!("context {key} gone"),
        Write::SaveContext { key, text } => format!("context {key} = {text}"),
        Write::DeleteContext { key } => format!("uncontext {key}"),
        Write::SaveToken(token) => render_token(token, run),
        Write::SaveInstance(instance) => render_instance(instance, run),
        Write::SaveGate(gate) => render_gate(gate),
        Write::SaveEvent(entry) => render_entry(entry),
        Write::SaveSignals { name, payloads } => format!("signals {name} = {}", json!(payloads)),
        Write::SaveMessage { id, message } => format!("message {id} {}", render_message(message)),
        Write::DeleteMessage { id } => format!("unmessage {id}"),
        Write::SaveNotification(notification) => render_notification(notification),
        Write::DeleteNotification { number } => format!("unnotification {number}"),
        Write::DeleteFailedWakes => "forget failed wakes".to_string(),
    }
}

fn render_command(command: &Command) -> String {
    match command {
        Command::AbortAttempt { token, epoch } => format!("abort {token}@{epoch}"),
        Command::DispatchTask(order) => format!("dispatch {}", render_order(order)),
        Command::EnqueueAttempt { token, epoch } => format!("enqueue {token}@{epoch}"),
        Command::RespondToClaim(order) => format!("hand {}", render_order(order)),
        Command::DeliverMessage { id, message } => format!("deliver {id} {}", render_message(message)),
        Command::SendNotification(notification) => {
            format!(
                "notify {} {} {}",
                notification.number, notification.target.url, notification.kind
            )
        }
        Command::PublishRun => "announce".into(),
        Command::PublishGate(gate) => format!("announce {} {}", gate.id, wire_name(&gate.status)),
        Command::PublishLatency {
            node_id,
            token,
            millis,
        } => format!("latency {node_id} {token} {millis}"),
        Command::PublishProgress { token, epoch } => format!("progress {token}@{epoch}"),
        Command::NotifyRunEnded => "ended".into(),
    }
}

/// Number, address, kind and status, then what there is to say about its attempts.
fn render_notification(notification: &Notification) -> String {
    let mut line = format!(
        "notification {} {} {} {}",
        notification.number,
        notification.target.url,
        notification.kind,
        wire_name(&notification.status)
    );
    if notification.attempts > 0 {
        line += &format!(" after {}", notification.attempts);
    }
    if let Some(error) = &notification.last_error {
        line += &format!(": {error}");
    }
    if let Some(skipped) = &notification.skipped {
        line += &format!(
            " for {} ({}-{})",
            skipped.count, skipped.first_seq, skipped.last_seq
        );
    }
    line
}

fn render_order(order: &AttemptOrder) -> String {
    let deadline = order
        .deadline_at
        .map(|at| format!(" by {at}"))
        .unwrap_or_default();
    format!("{}@{} {}{deadline}", order.token, order.epoch, order.input)
}

/// The kind and its main fields. The number also counts the events on other rows, which the lines of those rows leave out; of a timeout also the scope, the lateness and the action.
fn render_entry(entry: &RunEvent) -> String {
    let mut line = format!("event {}", wire_name(&entry.kind));
    for field in [
        "token_id",
        "node_id",
        "cause",
        "deadline",
        "retry_count",
        "delay_ms",
        "by_ms",
        "mode",
        "limit",
        "from_version",
        "version",
    ] {
        match entry.fields.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => line += &format!(" {text}"),
            Some(value) => line += &format!(" {field} {value}"),
        }
    }
    if let Some(name) = entry.fields.get("by").and_then(Value::as_str) {
        line += &format!(" by {name}");
    }
    if let Some(record) = &entry.record {
        line += &format!(
            " {{{} late {} {}}}",
            wire_name(&record.timeout_event.scope),
            record.timeout_event.lateness_ms,
            wire_name(&record.final_action)
        );
    }
    line
}

fn render_instance(instance: &Instance, run: &Run) -> String {
    let workflow = &run.snapshot_of_instance(instance.id).workflow;
    let mut line = format!(
        "instance {} {} of {}",
        instance.id.0, instance.group, instance.total
    );
    for (node, fan_in) in &instance.fan_ins {
        line += &format!(" join {} from {}", workflow.nodes[*node].id, fan_in.started_at);
        if let Some(at) = fan_in.timeout_at {
            line += &format!(" until {at}");
        }
        if let Some(at) = fan_in.fired_at() {
            line += &format!(" fired {at}");
        }
    }
    if instance.is_closed() {
        line += " closed";
    }
    line
}

fn render_gate(gate: &GateState) -> String {
    let mut line = format!(
        "gate {} {} {} {}",
        gate.id,
        wire_name(&gate.status),
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
            let order = if *held { "hold" } else { "release" };
            let budget = budget_ms
                .map(|millis| format!(" budget {millis}"))
                .unwrap_or_default();
            format!("{order} {run_id} #{number}{budget}")
        }
        Message::TellParent { run_id, news } => {
            let state = if news.paused { "paused" } else { "goes on" };
            format!(
                "tell {run_id} {}@{} {state} #{}",
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
                wire_name(&report.status)
            );
            if let Some(output) = &report.output {
                line += &format!(" {output}");
            }
            line + &render_failure(report.error.as_ref())
        }
    }
}

fn render_header(header: &Header) -> String {
    let mut line = format!("run {}", wire_name(&header.status));
    match (
        header.timeout_at.filter(|_| header.ended_at.is_none()),
        header.stopped_at,
    ) {
        (Some(at), None) => line += &format!(" until {at}"),
        (Some(at), Some(stopped_at)) => line += &format!(" {} left", at.saturating_sub(stopped_at)),
        (None, _) => {}
    }
    for holder in &header.pause_reasons {
        line += &format!(" held by {}", holder.name());
    }
    if let Some(name) = &header.started_by {
        line += &format!(" started by {name}");
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
    let node = &run.snapshot_of(token.id).workflow.nodes[token.node].id;
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
        match (token.deadline.at, token.deadline.stopped_at) {
            (Some(at), None) => line += &format!(" until {at}"),
            (Some(at), Some(stopped_at)) => line += &format!(" {} left", at.saturating_sub(stopped_at)),
            (None, _) => {}
        }
        if let Some(at) = token.watch_at {
            line += &format!(" watch {at}");
        }
    }
    if let Some(reason) = &token.reason {
        line += &format!(" ({reason})");
    }
    if let Some(output) = &token.output {
        // Of a large result only the size matters.
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
        Some(failure) => format!(
            " {}/{}: {}",
            failure.code,
            wire_name(&failure.class),
            failure.message
        ),
    }
}

/// The wire name of an enum.
pub fn wire_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        other => panic!("{other:?} has no wire name"),
    }
}
