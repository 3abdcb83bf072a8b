//! Presets with their default and hard limits, the bounds of a deployment, and the `timeouts` and `gate` of a workflow.

use serde::{Deserialize, Serialize};

use crate::base::limits::{TIMEOUT_CEILING_MS, TIMEOUT_MAX_MS, TIMEOUT_MIN_MS};
use crate::base::time::{DAY, HOUR, Limit, MINUTE, SECOND, format_duration};
use crate::definition::reader::Reader;

/// A set of defaults and hard limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    #[default]
    Standard,
    Service,
    Flow,
}

const PRESETS: &[(&str, Preset)] = &[
    ("standard", Preset::Standard),
    ("service", Preset::Service),
    ("flow", Preset::Flow),
];

/// What a default or a hard limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutLayer {
    Flow,
    Step,
    LlmCall,
    Tool,
}

impl TimeoutLayer {
    /// The field name in `timeouts`.
    pub fn name(self) -> &'static str {
        match self {
            TimeoutLayer::Flow => "flow",
            TimeoutLayer::Step => "step",
            TimeoutLayer::LlmCall => "llm_call",
            TimeoutLayer::Tool => "tool",
        }
    }
}

impl Preset {
    pub fn parse(name: &str) -> Option<Preset> {
        let (_, preset) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(*preset)
    }

    pub fn name(self) -> &'static str {
        match self {
            Preset::Standard => "standard",
            Preset::Service => "service",
            Preset::Flow => "flow",
        }
    }

    /// The limit that applies if a document sets none.
    pub fn default_limit(self, layer: TimeoutLayer) -> Option<u64> {
        match (self, layer) {
            (Preset::Standard, TimeoutLayer::Flow) => Some(HOUR),
            (Preset::Service, TimeoutLayer::Flow) => Some(30 * SECOND),
            (
                Preset::Standard | Preset::Service,
                TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool,
            ) => None,
            (Preset::Flow, TimeoutLayer::Flow) => Some(30 * MINUTE),
            (Preset::Flow, TimeoutLayer::Step) => Some(10 * MINUTE),
            (Preset::Flow, TimeoutLayer::LlmCall) => Some(2 * MINUTE),
            (Preset::Flow, TimeoutLayer::Tool) => Some(5 * MINUTE),
        }
    }

    /// The longest limit without `allow_exceed_hard`.
    pub fn hard_limit(self, layer: TimeoutLayer) -> Option<u64> {
        match (self, layer) {
            (
                Preset::Standard,
                TimeoutLayer::Flow | TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool,
            ) => None,
            (Preset::Service, TimeoutLayer::Flow) => Some(HOUR),
            (Preset::Service, TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool) => None,
            (Preset::Flow, TimeoutLayer::Flow) => Some(45 * MINUTE),
            (Preset::Flow, TimeoutLayer::Step) => Some(15 * MINUTE),
            (Preset::Flow, TimeoutLayer::LlmCall) => Some(3 * MINUTE),
            (Preset::Flow, TimeoutLayer::Tool) => Some(10 * MINUTE),
        }
    }

    /// The shortest limit.
    pub fn min_limit(self, layer: TimeoutLayer) -> Option<u64> {
        match (self, layer) {
            (Preset::Service, TimeoutLayer::Flow) => Some(SECOND),
            (Preset::Service, TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool) => None,
            (
                Preset::Standard | Preset::Flow,
                TimeoutLayer::Flow | TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool,
            ) => None,
        }
    }

    /// Why this preset rejects `limit`, if it does. `null` exceeds every hard limit. `may_exceed_hard` lifts the hard limit,
    /// but not the minimum.
    pub fn reject(self, layer: TimeoutLayer, limit: Limit, may_exceed_hard: bool) -> Option<LimitRejection> {
        let found = match limit {
            Limit::Unset => return None,
            Limit::Never => "no limit (null)".to_string(),
            Limit::After(millis) => format_duration(millis),
        };
        let millis = limit.millis();
        let of = format!("for a {} under preset \"{}\"", layer.name(), self.name());
        if let Some(max) = self.hard_limit(layer)
            && !may_exceed_hard
            && millis.is_none_or(|millis| millis > max)
        {
            let max = format_duration(max);
            return Some(LimitRejection::OverHardLimit(format!(
                "{found} is over the hard limit of {max} {of}"
            )));
        }
        let min = self.min_limit(layer)?;
        let is_under = millis.is_some_and(|millis| millis < min);
        is_under.then(|| {
            let min = format_duration(min);
            LimitRejection::UnderMinimum(format!("{found} is under the minimum of {min} {of}"))
        })
    }
}

/// Why a preset rejects a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitRejection {
    OverHardLimit(String),
    UnderMinimum(String),
}

impl LimitRejection {
    pub fn code(&self) -> &'static str {
        match self {
            LimitRejection::OverHardLimit(_) => "over_hard_limit",
            LimitRejection::UnderMinimum(_) => "under_minimum",
        }
    }

    /// Explains how to fix it. `place` says where to set `allow_exceed_hard`.
    pub fn message(&self, place: &str) -> String {
        match self {
            LimitRejection::OverHardLimit(why) => {
                format!("{why}; write less, or \"allow_exceed_hard\": true {place}")
            }
            LimitRejection::UnderMinimum(why) => format!("{why}; write at least that"),
        }
    }
}

/// The rules of a deployment: variables CURFEW_PRESET, CURFEW_TIMEOUT_MIN_MS, CURFEW_TIMEOUT_MAX_MS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRules {
    pub preset: Preset,
    pub min_ms: u64,
    pub max_ms: u64,
}

impl Default for TimeoutRules {
    fn default() -> Self {
        TimeoutRules {
            preset: Preset::Standard,
            min_ms: TIMEOUT_MIN_MS,
            max_ms: TIMEOUT_MAX_MS,
        }
    }
}

impl TimeoutRules {
    /// At least as wide as those of any deployment.
    pub const WIDEST: TimeoutRules = TimeoutRules {
        preset: Preset::Standard,
        min_ms: 1,
        max_ms: TIMEOUT_CEILING_MS,
    };

    /// An empty variable counts as absent.
    pub fn from_variables(
        preset: Option<&str>,
        min_ms: Option<&str>,
        max_ms: Option<&str>,
    ) -> Result<TimeoutRules, String> {
        let non_empty = |value: Option<&str>| {
            let text = value.map(str::trim).filter(|text| !text.is_empty());
            text.map(|text| text.chars().take(40).collect::<String>())
        };
        let default = TimeoutRules::default();
        let preset = match non_empty(preset) {
            None => default.preset,
            Some(name) => Preset::parse(&name).ok_or_else(|| {
                format!("CURFEW_PRESET is \"{name}\"; write \"standard\", \"service\" or \"flow\"")
            })?,
        };
        let bound = |name: &str, value: Option<&str>, default: u64| match non_empty(value) {
            None => Ok(default),
            Some(text) => text
                .parse::<u64>()
                .ok()
                .filter(|millis| (1..=TIMEOUT_CEILING_MS).contains(millis))
                .ok_or_else(|| {
                    format!("{name} is \"{text}\"; write whole milliseconds from 1 to {TIMEOUT_CEILING_MS}")
                }),
        };
        let min_ms = bound("CURFEW_TIMEOUT_MIN_MS", min_ms, default.min_ms)?;
        let max_ms = bound("CURFEW_TIMEOUT_MAX_MS", max_ms, default.max_ms)?;
        if min_ms > max_ms {
            return Err(format!(
                "CURFEW_TIMEOUT_MIN_MS is {min_ms} and CURFEW_TIMEOUT_MAX_MS is {max_ms}; write a minimum that is not above the maximum"
            ));
        }
        Ok(TimeoutRules {
            preset,
            min_ms,
            max_ms,
        })
    }
}

/// `timeouts` of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    pub preset: Option<Preset>,
    pub step: Limit,
    pub flow: Limit,
    pub llm_call: Limit,
    pub tool: Limit,
    /// A child run gets at most the remaining time of this run.
    pub inherit_budget: bool,
    /// The fraction of a deadline at which a warning is emitted.
    pub warn_at: f64,
}

const WARN_AT: f64 = 0.8;

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            preset: None,
            step: Limit::Unset,
            flow: Limit::Unset,
            llm_call: Limit::Unset,
            tool: Limit::Unset,
            inherit_budget: false,
            warn_at: WARN_AT,
        }
    }
}

impl Timeouts {
    /// The workflow's own default, else that of its preset, else that of the deployment's preset.
    pub fn default_limit(&self, layer: TimeoutLayer, deployment: Preset) -> Limit {
        let own = match layer {
            TimeoutLayer::Flow => self.flow,
            TimeoutLayer::Step => self.step,
            TimeoutLayer::LlmCall => self.llm_call,
            TimeoutLayer::Tool => self.tool,
        };
        let preset = self.preset.unwrap_or(deployment);
        own.or(preset.default_limit(layer).map_or(Limit::Unset, Limit::After))
    }
}

pub(super) fn read_timeouts(reader: Reader) -> Timeouts {
    let timeouts = Timeouts {
        preset: reader.choice("preset", PRESETS),
        step: reader.limit_or_millis("step", "step_ms"),
        flow: reader.limit_or_millis("flow", "flow_ms"),
        llm_call: reader.limit_or_millis("llm_call", "llm_call_ms"),
        tool: reader.limit_or_millis("tool", "tool_ms"),
        inherit_budget: reader.boolean("inherit_budget").unwrap_or(false),
        warn_at: read_warn_at(&reader),
    };
    reader.finish();
    timeouts
}

fn read_warn_at(reader: &Reader) -> f64 {
    let Some(value) = reader.value("warn_at") else {
        return WARN_AT;
    };
    let fraction = value.as_f64().filter(|part| *part > 0.0 && *part < 1.0);
    if fraction.is_none() {
        reader.report(
            "warn_at",
            "out_of_range",
            "a warning comes at a fraction of the deadline between 0 and 1, like 0.8",
        );
    }
    fraction.unwrap_or(WARN_AT)
}

/// The deadline of a workflow's timeout gate, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutGate {
    pub timeout_ms: u64,
    pub on_timeout: TimeoutGatePolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutGatePolicy {
    CancelAll,
    Fail,
}

const TIMEOUT_GATE_POLICIES: &[(&str, TimeoutGatePolicy)] = &[
    ("cancel_all", TimeoutGatePolicy::CancelAll),
    ("fail", TimeoutGatePolicy::Fail),
];

impl Default for TimeoutGate {
    fn default() -> Self {
        TimeoutGate {
            timeout_ms: 7 * DAY,
            on_timeout: TimeoutGatePolicy::CancelAll,
        }
    }
}

pub(super) fn read_timeout_gate(reader: Reader) -> TimeoutGate {
    let default = TimeoutGate::default();
    let timeout = reader.limit("timeout", "timeout_ms");
    if timeout == Limit::Never {
        reader.report(
            reader.limit_field("timeout", "timeout_ms"),
            "wrong_type",
            "a timeout gate needs a deadline of its own, so that every run ends; leave it out for 7 days",
        );
    }
    let on_timeout = reader.choice("on_timeout", TIMEOUT_GATE_POLICIES);
    reader.finish();
    TimeoutGate {
        timeout_ms: timeout.millis().unwrap_or(default.timeout_ms),
        on_timeout: on_timeout.unwrap_or(default.on_timeout),
    }
}
