//! Orders to executors: tokens that became ready in one commit share invocations, and each answer is heard as it
//! comes. Whatever happens to an attempt comes back as an event.

use std::rc::Rc;

use futures_util::StreamExt;
use serde_json::json;
use serde_json::value::RawValue;
use worker::Result;

use super::object::{Object, report};
use super::turn::Turn;
use crate::engine::{Event, Order, TokenId, invocations};
use crate::platform::{self, call};
use crate::wire::{TaskOrder, TaskReport};

/// Where `npm start` serves the API: callbacks need CURFEW_PUBLIC_URL everywhere else.
const LOCAL_URL: &str = "http://localhost:8787";

impl Object {
    pub(super) fn dispatch(self: &Rc<Self>, turn: &Turn, orders: Vec<Order>) -> Result<()> {
        if orders.is_empty() {
            return Ok(());
        }
        for order in &orders {
            self.log_limit(order);
        }
        for orders in invocations(orders) {
            let attempts: Vec<(TokenId, u64)> =
                orders.iter().map(|order| (order.token, order.epoch)).collect();
            let object = Rc::clone(self);
            let turn = turn.clone();
            turn.spend();
            self.calls.start(&attempts, async move {
                let mut open: Vec<(TokenId, u64)> =
                    orders.iter().map(|order| (order.token, order.epoch)).collect();
                let ended = object.invoke(&turn, &orders, &mut open).await;
                // Whoever was not answered never will be.
                let message = ended
                    .err()
                    .unwrap_or_else(|| "the executor ended without an answer".into());
                if !open.is_empty() {
                    platform::log(json!({
                        "level": "warn", "event": "call_lost", "attempts": open.len(), "message": message,
                    }));
                }
                for (token, epoch) in open {
                    let message = message.clone();
                    object.hear(
                        &turn,
                        token,
                        epoch,
                        Event::CallLost {
                            token,
                            epoch,
                            message,
                        },
                    );
                }
            });
        }
        Ok(())
    }

    /// Sends the orders and hears the reports; `open` loses every attempt that was answered. No timer: the alarm
    /// stands at each attempt's deadline or its next watch, and drops the call.
    async fn invoke(
        self: &Rc<Self>,
        turn: &Turn,
        orders: &[Order],
        open: &mut Vec<(TokenId, u64)>,
    ) -> std::result::Result<(), String> {
        let executor =
            call::service(&self.env, "EXECUTOR").ok_or("no service binding EXECUTOR is configured")?;
        let mut body = String::new();
        for order in orders {
            if !body.is_empty() {
                body.push('\n');
            }
            body.push_str(&self.order_text(order)?);
        }
        let answer = call::send(&executor, call::Call::post("http://executor/execute", &body)).await?;
        if answer.status() != 200 {
            return Err(format!("the executor answered with status {}", answer.status()));
        }
        if orders.len() == 1 {
            let text = answer.text_unbounded().await?;
            return self.hear_report(turn, &text, open);
        }
        let mut lines = answer.lines()?;
        while let Some(line) = lines.next().await {
            self.hear_report(turn, &line?, open)?;
        }
        Ok(())
    }

    fn log_limit(&self, order: &Order) {
        let Some((millis, source)) = order.limit else {
            return;
        };
        let run_id = self.run_id();
        platform::log(json!({
            "level": "info", "event": "timeout_set", "run_id": run_id, "token_id": order.token.to_string(),
            "timeout_ms": millis, "source": source,
        }));
    }

    fn hear_report(
        self: &Rc<Self>,
        turn: &Turn,
        text: &str,
        open: &mut Vec<(TokenId, u64)>,
    ) -> std::result::Result<(), String> {
        let task_report: TaskReport = serde_json::from_str(text)
            .map_err(|error| format!("the executor's answer is no report: {error}"))?;
        let attempt = TokenId::parse(&task_report.token_id).map(|token| (token, task_report.epoch));
        let position = open.iter().position(|other| Some(*other) == attempt);
        let position = position.ok_or("the executor answered for another attempt")?;
        let (token, epoch) = open.swap_remove(position);
        self.hear(turn, token, epoch, Event::TaskReported(Box::new(task_report)));
        Ok(())
    }

    /// The call counts as open until its answer is heard, or what is due would take the attempt for lost.
    fn hear(self: &Rc<Self>, turn: &Turn, token: TokenId, epoch: u64, event: Event) {
        let heard = self.feed(turn, event);
        self.calls.end(token, epoch);
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

    pub(super) fn order_text(&self, order: &Order) -> std::result::Result<String, String> {
        let input = order.input.to_string();
        let token_id = order.token.to_string();
        let checkpoint = match &order.checkpoint {
            Some(checkpoint) => Some(serde_json::to_string(checkpoint).map_err(|error| error.to_string())?),
            None => None,
        };
        let callback_url = order.capability.as_ref().map(|capability| {
            let base = platform::variable(&self.env, "CURFEW_PUBLIC_URL").unwrap_or_else(|| LOCAL_URL.into());
            format!("{}/v1/callbacks/{capability}", base.trim_end_matches('/'))
        });
        let text = self.with_run(|run| {
            let task = run.snapshot().tasks.get(order.task).ok_or("the task is gone")?;
            let raw = |text| serde_json::from_str::<&RawValue>(text).map_err(|error| error.to_string());
            serde_json::to_string(&TaskOrder {
                run_id: &run.header.id,
                token_id: &token_id,
                epoch: order.epoch,
                task: raw(&task.text)?,
                input: raw(&input)?,
                deadline_at: order.deadline_at,
                idempotency_key: &format!("{}:{}", run.header.id, order.work_of),
                resume_from: checkpoint.as_deref().map(raw).transpose()?,
                action_timeouts: order.action_timeouts,
                callback_url: callback_url.as_deref(),
            })
            .map_err(|error| error.to_string())
        });
        text.map_err(|error| error.to_string())?
    }
}
