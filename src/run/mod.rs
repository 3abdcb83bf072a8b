//! The pure decisions of a run: `Run::handle(now, event)` returns a `Decision`. No clock, no randomness, no I/O.

mod coalesce;
mod context;
mod decision;
mod emit;
mod event;
mod fan;
mod header;
mod message;
mod metrics;
mod notification;
mod outbox;
mod pending_changes;
mod recovery;
mod rejection;
mod restore;
mod size;
mod state;
mod time;
mod token;
mod wait;

pub use coalesce::DecisionBatch;
pub use context::{Context, GONE};
pub use decision::{Command, Decision, Write};
pub use emit::{EVENT_LIMIT, token_of_key};
pub use event::{
    Event, Extension, InstanceSummary, ParentSender, Past, RestartPoint, ResumeRows, RetryMode, StartRefusal,
    TokenSummary,
};
pub use fan::{Branch, FanIn, FanInState, Instance, InstanceId, InstanceStatus};
pub use header::{
    ChildIds, EventRef, Header, ParentLink, PauseReason, RunStatus, Settings, StartRequest, TriggeredBy,
    hops_of, root_event_of,
};
pub use message::{ChildReport, ChildStatusUpdate, Message};
pub use metrics::{
    Histogram, LATENESS_BOUNDS_MS, MeasuredEvent, MeasuredRows, MeasuredToken, NODE_BOUNDS_MS, OTHER,
    RUN_BOUNDS_MS, RunMetrics,
};
pub use notification::{
    DeploymentTarget, NOTIFICATIONS_SKIPPED, Notification, NotificationStatus, NotifySettings, Skipped,
};
pub use recovery::compensate::{
    COMPENSATED, CompensatedToken, Compensates, CompensationResult, CompensationStatus, NeededRows, ReadRows,
};
pub use recovery::ending::{EndEvent, EndPhase, Ending, HandlerResult};
pub use recovery::resume::{REACHED_A_LIMIT, ResumePlan, is_resumable};
pub use recovery::rewind::{Rewind, WrittenAt};
pub use recovery::undo::{Back, Patch, Step, UNDO_INLINE_BYTES};
pub use recovery::version::{Misfit, NewVersion};
pub use rejection::{FourEyes, Rejection};
pub use restore::StoredRun;
pub use state::{NewRun, Run};
pub use time::event_log::{LATE_NOTED, RunEvent, RunEventKind};
pub use time::history_event::{EventSubject, HistoryEvent};
pub use time::partial_artifacts::RecordedArtifact;
pub use time::row_events::{RowEvent, last_seq};
pub use time::timeout_gate::workflow_timed_out;
pub use time::timeout_record::{FinalAction, LastKnownState, TimeoutEvent, TimeoutRecord, TimeoutScope};
pub use token::attempt_limit::ExecutionLimit;
pub use token::deadline::TokenDeadline;
pub use token::lane::{BatchKind, invocations};
pub use token::order::{AttemptOrder, LimitSource};
pub use token::progress::Progress;
pub use token::unroutable::{Routes, Unroutable};
pub use token::{Interrupted, JoinWait, Lane, QueueClaim, Token, TokenId, TokenStatus, TokenUndo};
pub use wait::callback::CallbackResult;
pub use wait::capability::{CallbackKey, CallbackSecret, Capability};
pub use wait::escalation::Escalation;
pub use wait::gate::{GateDecision, GateKind, GateState, GateStatus};
