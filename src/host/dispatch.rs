//! Orders to executors and their reports. Orders of one commit share connections; whatever happens to an attempt comes back as
//! an event.

use serde_json::json;
use serde_json::value::to_raw_value;

use crate::base::from_json::from_json;
use crate::base::text::to_json;
use crate::host::executor_calls::Attempt;
use crate::host::object::{Accepted, Host};
use crate::host::platform::{Platform, Result};
use crate::host::subrequests::SubrequestBudget;
use crate::protocol::task::{PROGRESS_LINE, TaskOrder, TaskProgress, TaskReport};
use crate::run::{AttemptOrder, DecisionBatch, Event, TokenId, invocations};

const NO_EXECUTOR: &str = "no service binding EXECUTOR is configured";

impl<P: Platform> Host<P> {
    pub(super) fn dispatch(&self, budget: &SubrequestBudget, orders: Vec<AttemptOrder>) {
        for order in &orders {
            self.log_limit(order);
        }
        for orders in invocations(orders) {
            let attempts: Vec<Attempt> = orders.iter().map(|order| (order.token, order.epoch)).collect();
            if let Err(message) = self.send_orders(budget, &orders, &attempts) {
                self.calls_lost(budget, attempts, message);
            }
        }
    }

    /// By the connection whose last report is being handled, if there is one. No timer is needed: the alarm is set to the
    /// attempt's deadline or next check, and aborts the call then.
    fn send_orders(
        &self,
        budget: &SubrequestBudget,
        orders: &[AttemptOrder],
        attempts: &[Attempt],
    ) -> std::result::Result<(), String> {
        let mut lines = String::new();
        for order in orders {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(&self.order_text(order)?);
        }
        let is_single = matches!(orders, [order] if order.is_short_and_last) && !self.calls.has_reusable();
        if is_single && let [attempt] = attempts {
            budget.spend();
            let number = self.calls.next_number();
            let connection = self.platform.send_one(number, &lines).ok_or(NO_EXECUTOR)?;
            self.calls.add_single(number, budget, *attempt, connection);
            return Ok(());
        }
        let calls = orders.iter().map(|order| order.calls).sum();
        let number = match self.calls.take_reusable(calls) {
            Some(number) => number,
            None => {
                budget.spend();
                let number = self.calls.next_number();
                let connection = self.platform.connect(number).ok_or(NO_EXECUTOR)?;
                self.calls.add(number, budget, connection);
                number
            }
        };
        self.calls.send(number, attempts, calls, &lines);
        Ok(())
    }

    pub(super) fn log_limit(&self, order: &AttemptOrder) {
        if let Some((millis, source)) = order.limit {
            let node_id = self.with_run(|run| {
                let token = run.live_token(order.token)?;
                Some(run.snapshot().workflow.nodes[token.node].id.clone())
            });
            self.platform.log(json!({
                "level": "info", "event": "timeout_set", "run_id": self.run_id(),
                "token_id": order.token.to_string(), "node_id": node_id.ok().flatten(), "epoch": order.epoch,
                "timeout_ms": millis, "source": source,
            }));
        }
    }

    /// Reports and progress that arrived together, one per line. Their decisions are committed as one.
    pub fn reports_arrived(&self, number: u32, text: &str) {
        let Some(budget) = self.calls.budget_of(number) else {
            return;
        };
        let mut batch = DecisionBatch::default();
        let handled = text
            .split('\n')
            .try_for_each(|line| match line.strip_prefix(PROGRESS_LINE) {
                Some(progress) => {
                    self.handle_progress(number, progress, &budget, &mut batch);
                    Ok(())
                }
                None => self.handle_report(number, line, &budget, &mut batch),
            });
        if let Err(error) = self.carry_out_batch(batch, &budget) {
            self.report("feed_failed", &error);
        }
        self.calls.finish_if_idle(number);
        if let Err(reason) = handled {
            self.connection_closed(number, Some(reason));
        }
    }

    /// An error says what is wrong with the report. What follows it cannot be relied on.
    fn handle_report(
        &self,
        number: u32,
        line: &str,
        budget: &SubrequestBudget,
        batch: &mut DecisionBatch,
    ) -> std::result::Result<(), String> {
        let report: TaskReport =
            from_json(line).map_err(|error| format!("the executor's answer is no report: {error}"))?;
        let attempt = TokenId::parse(&report.token_id).map(|token| (token, report.epoch));
        let attempt = attempt.filter(|attempt| self.calls.was_ordered(number, *attempt));
        let attempt = attempt.ok_or("the executor answered for another attempt")?;
        // The call stays open until the report was decided on: otherwise what is due would take the attempt for lost.
        self.calls.report_arrived(number, attempt);
        let event = Event::TaskReported(Box::new(report));
        self.log_unaccepted(attempt, self.feed_into(batch, budget, event));
        self.calls.report_handled(number, attempt);
        Ok(())
    }

    /// Progress that cannot be read, or is of another attempt, changes nothing: the report still counts.
    fn handle_progress(&self, number: u32, line: &str, budget: &SubrequestBudget, batch: &mut DecisionBatch) {
        let is_ordered = |read: &TaskProgress| {
            let token = TokenId::parse(&read.token_id);
            token.is_some_and(|token| self.calls.was_ordered(number, (token, read.epoch)))
        };
        let read = from_json(line).ok().filter(is_ordered);
        let Some(read) = read else {
            self.platform.log(json!({
                "level": "warn", "event": "progress_ignored", "run_id": self.run_id(), "bytes": line.len(),
            }));
            return;
        };
        let event = Event::Heartbeat {
            token: read.token_id,
            epoch: read.epoch,
            progress: Some(Box::new(read.progress)),
        };
        // An attempt that was aborted may still send some.
        if let Err(error) = self.feed_into(batch, budget, event) {
            self.report("feed_failed", &error);
        }
    }

    /// No more reports come by this connection.
    pub fn connection_closed(&self, number: u32, reason: Option<String>) {
        if let Some((budget, attempts)) = self.calls.unreported(number) {
            let message = reason.unwrap_or_else(|| "the executor ended without an answer".into());
            self.calls_lost(&budget, attempts, message);
        }
    }

    fn calls_lost(&self, budget: &SubrequestBudget, attempts: Vec<Attempt>, message: String) {
        self.platform.log(json!({
            "level": "warn", "event": "call_lost", "attempts": attempts.len(), "message": message,
        }));
        // One batch, because the attempts share the invocation's budget of computation.
        let mut batch = DecisionBatch::default();
        for attempt in &attempts {
            let lost = Event::CallLost {
                token: attempt.0,
                epoch: attempt.1,
                message: message.clone(),
            };
            self.log_unaccepted(*attempt, self.feed_into(&mut batch, budget, lost));
        }
        if let Err(error) = self.carry_out_batch(batch, budget) {
            self.report("feed_failed", &error);
        }
        for attempt in attempts {
            self.calls.abort(attempt);
        }
    }

    pub(super) fn order_text(&self, order: &AttemptOrder) -> std::result::Result<String, String> {
        let input = to_raw_value(&order.input).map_err(|error| error.to_string())?;
        let token_id = order.token.to_string();
        let checkpoint = order.checkpoint.as_ref().map(to_raw_value).transpose();
        let checkpoint = checkpoint.map_err(|error| error.to_string())?;
        let callback_url = match &order.capability {
            Some(capability) => {
                let base = self.platform.public_url()?;
                Some(format!(
                    "{}/v1/callbacks/{capability}",
                    base.trim_end_matches('/')
                ))
            }
            None => None,
        };
        let text = self.with_run(|run| {
            let task = run.snapshot().tasks.get(order.task).ok_or("the task is gone")?;
            let spans = run.header.spans();
            let context = self.context_of(&run.header, || spans.attempt(order.token.0, order.epoch));
            let traceparent = context.map(|context| context.traceparent.to_string());
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
                traceparent: traceparent.as_deref(),
                records_spans: context.is_some_and(|context| context.records_spans),
            })
            .map_err(|error| error.to_string())
        });
        text.map_err(|error| error.0)?
    }

    /// An event that no sender waits for.
    fn log_unaccepted(&self, (token, epoch): Attempt, fed: Result<Accepted>) {
        match fed {
            Ok(Ok(())) => {}
            // The token went on without this report.
            Ok(Err(rejection)) => self.platform.log(json!({
                "level": "info", "event": "late_result_discarded", "token_id": token.to_string(),
                "epoch": epoch, "reason": format!("{rejection:?}"),
            })),
            Err(error) => self.report("feed_failed", &error),
        }
    }
}
