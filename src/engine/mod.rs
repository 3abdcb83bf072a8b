//! The decisions, pure: `Run::handle(now, event)` answers with effects. No clock, no randomness, no I/O.

mod attempt;
mod begin;
mod branch;
mod callback;
mod child;
mod chronicle;
mod conclude;
mod context;
mod control;
mod deadline;
mod effect;
mod emit;
mod escalation;
mod fan_in;
mod fan_out;
mod finish;
mod gate;
mod header;
mod hold;
mod lane;
mod merge;
mod no_route;
mod outbox;
mod queue;
mod recall;
mod record;
mod report;
mod resume;
mod rewind;
mod route;
mod run;
mod size;
mod supervise;
mod together;
mod token;
mod undo;
mod value_hash;
mod wait;

pub use branch::{Branch, FanIn, Instance, InstanceId};
pub use callback::{Capability, Outcome};
pub use chronicle::{Entry, EntryKind, LATE_NOTED};
pub use context::{Context, GONE};
pub use effect::{
    ChildNews, ChildReport, Effect, Event, Extension, LimitSource, Message, Order, ParentSender, Past,
    PastToken, Rejection, RestartPoint, RetryMode, RowsToGoOn, StartRefusal,
};
pub use emit::EVENT_LIMIT;
pub use escalation::Escalation;
pub use gate::{Decision, GateKind, GateState, GateStatus};
pub use header::{
    ChildIds, EventRef, Header, Holder, ParentLink, RunStatus, Settings, StartRequest, TriggeredBy, hops_of,
    root_event_of,
};
pub use lane::{Company, invocations};
pub use no_route::{Routes, Stranded};
pub use recall::Remembered;
pub use record::{FinalAction, LastKnownState, TimeoutEvent, TimeoutRecord, TimeoutScope};
pub use resume::{MET_A_BOUND, ResumePlan, can_go_on};
pub use rewind::{Rewind, WrittenAt};
pub use run::{NewRun, Run};
pub use together::Decided;
pub use token::{Cut, Lane, Token, TokenId, TokenStatus};
pub use undo::{Back, Patch, Step, UNDO_INLINE_BYTES};
