//! Orders to executors: tokens that became ready in one commit share invocations, and each answer is heard as it
//! comes. Whatever happens to an attempt comes back as an event.

use std::rc::{Rc, Weak};

use serde_json::json;
use serde_json::value::to_raw_value;
use worker::Result;

use crate::base::text::to_json;
use crate::protocol::task::{TaskOrder, TaskReport};
use crate::run::{AttemptOrder, DecisionBatch, Event, Rejection, TokenId, invocations};
use crate::worker::api::prepare_start::{PUBLIC_URL_ADVICE, public_url};
use crate::worker::platform;
use crate::worker::platform::executor_client::Handlers;
use crate::worker::run_object::executor_calls::Attempt;
use crate::worker::run_object::object::{Object, report};
use crate::worker::run_object::subrequests::Turn;

/// What an object does with the messages of its executors, while it is in memory.
pub(in crate::worker) fn executor_handlers(object: &Weak<Object>) -> Handlers {
    let (to_hear, to_end) = (Weak::clone(object), Weak::clone(object));
    Handlers::new(
        move |number, text| {
            if let Some(object) = to_hear.upgrade() {
                object.hear_reports(number, &text);
            }
        },
        move |number, reason| {
            if let Some(object) = to_end.upgrade() {
                object.call_over(number, reason);
            }
        },
    )
}

impl Object {
    pub(in crate::worker) fn dispatch(self: &Rc<Self>, turn: &Turn, orders: Vec<AttemptOrder>) -> Result<()> {
        for order in &orders {
            self.log_limit(order);
        }
        for orders in invocations(orders) {
            let attempts: Vec<Attempt> = orders.iter().map(|order| (order.token, order.epoch)).collect();
            if let Err(message) = self.invoke(turn, &orders, &attempts) {
                self.lose(turn, attempts, message);
            }
        }
        Ok(())
    }

    /// Sends the orders, by the call that has just answered if there is one. No timer: the alarm stands at each
    /// attempt's deadline or its next watch, and drops the call.
    fn invoke(
        &self,
        turn: &Turn,
        orders: &[AttemptOrder],
        attempts: &[Attempt],
    ) -> std::result::Result<(), String> {
        let executor = self.executor.as_ref();
        let executor = executor.ok_or("no service binding EXECUTOR is configured")?;
        let mut lines = String::new();
        for order in orders {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(&self.order_text(order)?);
        }
        let goes_alone =
            matches!(orders, [order] if order.is_short_and_last) && !self.calls.has_one_at_hand();
        if goes_alone && let [attempt] = attempts {
            turn.spend();
            self.calls.open_once(turn, *attempt, |number| {
                self.executor_handlers.send_one(executor, number, &lines)
            });
            return Ok(());
        }
        let calls = orders.iter().map(|order| order.calls).sum();
        let number = self.calls.take_at_hand(calls).unwrap_or_else(|| {
            turn.spend();
            let heartbeat_ms = self.signs_of_life.heartbeat_ms;
            self.calls.open(turn, |number| {
                self.executor_handlers.connect(executor, number, heartbeat_ms)
            })
        });
        self.calls.send(number, attempts, calls, &lines);
        Ok(())
    }

    fn log_limit(&self, order: &AttemptOrder) {
        let Some((millis, source)) = order.limit else {
            return;
        };
        let run_id = self.run_id();
        platform::log(json!({
            "level": "info", "event": "timeout_set", "run_id": run_id, "token_id": order.token.to_string(),
            "timeout_ms": millis, "source": source,
        }));
    }

    /// Reports that came together, a line each: what is decided on them is carried out as one.
    fn hear_reports(self: &Rc<Self>, number: u32, text: &str) {
        let Some(turn) = self.calls.turn_of(number) else {
            return;
        };
        let mut decided = DecisionBatch::default();
        let heard = text
            .split('\n')
            .try_for_each(|line| self.hear_report(number, line, &turn, &mut decided));
        if let Err(error) = self.carry_out_all(decided, &turn) {
            report("feed_failed", &error.to_string());
        }
        self.calls.settle(number);
        if let Err(reason) = heard {
            self.call_over(number, Some(reason));
        }
    }

    /// An error is what is wrong with the answer: nothing that follows it can be relied on.
    fn hear_report(
        self: &Rc<Self>,
        number: u32,
        line: &str,
        turn: &Turn,
        decided: &mut DecisionBatch,
    ) -> std::result::Result<(), String> {
        let task_report: TaskReport = serde_json::from_str(line)
            .map_err(|error| format!("the executor's answer is no report: {error}"))?;
        let attempt = TokenId::parse(&task_report.token_id).map(|token| (token, task_report.epoch));
        let attempt = attempt.filter(|attempt| self.calls.was_asked(number, *attempt));
        let attempt = attempt.ok_or("the executor answered for another attempt")?;
        // It counts as open until it was heard, or what is due would take it for lost.
        self.calls.hear(number, attempt);
        let event = Event::TaskReported(Box::new(task_report));
        note(attempt, self.feed_into(decided, turn, event));
        self.calls.answered(number, attempt);
        Ok(())
    }

    /// Nothing more comes by this call.
    fn call_over(self: &Rc<Self>, number: u32, reason: Option<String>) {
        if let Some((turn, attempts)) = self.calls.unanswered(number) {
            let message = reason.unwrap_or_else(|| "the executor ended without an answer".into());
            self.lose(&turn, attempts, message);
        }
    }

    fn lose(self: &Rc<Self>, turn: &Turn, attempts: Vec<Attempt>, message: String) {
        platform::log(json!({
            "level": "warn", "event": "call_lost", "attempts": attempts.len(), "message": message,
        }));
        // Decided as one: many attempts lost together share the budget of computation of this turn.
        let mut decided = DecisionBatch::default();
        for attempt in &attempts {
            let lost = Event::CallLost {
                token: attempt.0,
                epoch: attempt.1,
                message: message.clone(),
            };
            note(*attempt, self.feed_into(&mut decided, turn, lost));
        }
        if let Err(error) = self.carry_out_all(decided, turn) {
            report("feed_failed", &error.to_string());
        }
        for attempt in attempts {
            self.calls.abort(attempt);
        }
    }

    pub(in crate::worker) fn order_text(&self, order: &AttemptOrder) -> std::result::Result<String, String> {
        let input = to_raw_value(&order.input).map_err(|error| error.to_string())?;
        let token_id = order.token.to_string();
        let checkpoint = order.checkpoint.as_ref().map(to_raw_value).transpose();
        let checkpoint = checkpoint.map_err(|error| error.to_string())?;
        let callback_url = match &order.capability {
            Some(capability) => {
                let base = public_url(&self.env).ok_or(PUBLIC_URL_ADVICE)?;
                Some(format!(
                    "{}/v1/callbacks/{capability}",
                    base.trim_end_matches('/')
                ))
            }
            None => None,
        };
        let text = self.with_run(|run| {
            let task = run.snapshot().tasks.get(order.task).ok_or("the task is gone")?;
            to_json(&TaskOrder {
                run_id: &run.header.id,
                token_id: &token_id,
                epoch: order.epoch,
                task: &task.text,
                input: &input,
                deadline_at: order.deadline_at,
                run_ends_at: order.run_ends_at,
                idempotency_key: &format!("{}:{}", run.header.id, order.work_of),
                resume_from: checkpoint.as_deref(),
                action_timeouts: order.action_timeouts,
                callback_url: callback_url.as_deref(),
            })
            .map_err(|error| error.to_string())
        });
        text.map_err(|error| error.to_string())?
    }
}

/// What became of an event that nobody waits for.
fn note((token, epoch): Attempt, heard: Result<std::result::Result<(), Rejection>>) {
    match heard {
        Ok(Ok(())) => {}
        // A late or a second answer: the token has moved on without it.
        Ok(Err(rejection)) => platform::log(json!({
            "level": "info", "event": "late_result_discarded", "token_id": token.to_string(),
            "epoch": epoch, "reason": format!("{rejection:?}"),
        })),
        Err(error) => report("feed_failed", &error.to_string()),
    }
}
