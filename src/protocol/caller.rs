//! Who sends a request, and which workflows the request may reach.

use serde::{Deserialize, Serialize};

/// The sender of a request that came through the API. Requests from inside (the sweep, a consumer, another run) have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The name of its credential. `None` only in development, where requests need no credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The workflows that it may see and change.
    #[serde(default, skip_serializing_if = "WorkflowScope::is_unlimited")]
    pub workflows: WorkflowScope,
}

impl Caller {
    pub const ANONYMOUS: Caller = Caller {
        name: None,
        workflows: WorkflowScope::UNLIMITED,
    };

    /// The caller under the name that its request gives, if its credential has none.
    pub fn or_named(&self, name: Option<String>) -> Caller {
        Caller {
            name: self.name.clone().or(name),
            workflows: self.workflows.clone(),
        }
    }
}

/// A set of workflow ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkflowScope {
    /// `None`: all workflows. In a pattern `*` stands for any characters, also for none.
    patterns: Option<Vec<String>>,
}

impl WorkflowScope {
    pub const UNLIMITED: WorkflowScope = WorkflowScope { patterns: None };

    /// `None` if a pattern has a character that neither an id nor a pattern may have. An empty list reaches no workflow.
    pub fn new(patterns: Vec<String>) -> Option<WorkflowScope> {
        let is_valid = patterns.iter().all(|pattern| is_pattern(pattern));
        is_valid.then_some(WorkflowScope {
            patterns: Some(patterns),
        })
    }

    /// The workflows of both.
    pub fn union(self, other: WorkflowScope) -> WorkflowScope {
        let patterns = match (self.patterns, other.patterns) {
            (Some(mut patterns), Some(others)) => {
                patterns.extend(others);
                Some(patterns)
            }
            (None, _) | (_, None) => None,
        };
        WorkflowScope { patterns }
    }

    pub fn is_unlimited(&self) -> bool {
        self.patterns.is_none()
    }

    pub fn contains(&self, workflow_id: &str) -> bool {
        match &self.patterns {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| matches(pattern, workflow_id)),
        }
    }

    /// The one workflow of the set, if it is known to have no other.
    pub fn only(&self) -> Option<&str> {
        match self.patterns.as_deref() {
            Some([id]) if !id.contains('*') => Some(id),
            Some(_) | None => None,
        }
    }
}

const PATTERN_LENGTH_MAX: usize = 64;

fn is_pattern(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_*".contains(&byte);
    (1..=PATTERN_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Goes back to the last `*` only, so that the time is bounded by the product of the lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(byte) if *byte == text[seen] => {
                at += 1;
                seen += 1;
            }
            Some(_) | None => match star {
                Some((position, matched)) => {
                    star = Some((position, matched + 1));
                    at = position + 1;
                    seen = matched + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(patterns: &[&str]) -> Option<WorkflowScope> {
        WorkflowScope::new(patterns.iter().map(|text| text.to_string()).collect())
    }

    #[test]
    fn patterns() {
        let orders = scope(&["order-*", "refund"]).expect("valid");
        for (id, expected) in [
            ("order-", true),
            ("order-eu", true),
            ("order", false),
            ("my-order-eu", false),
            ("refund", true),
            ("refunds", false),
            ("", false),
        ] {
            assert_eq!(orders.contains(id), expected, "{id}");
        }
        let middle = scope(&["a*b*c"]).expect("valid");
        assert!(middle.contains("abc") && middle.contains("axxbyybzc"));
        assert!(!middle.contains("abcd") && !middle.contains("acb"));
        assert!(scope(&["*"]).expect("valid").contains("anything"));
        assert!(!scope(&[]).expect("valid").contains("anything"));
        assert!(WorkflowScope::UNLIMITED.contains("anything"));
    }

    #[test]
    fn a_set_of_one() {
        assert_eq!(scope(&["refund"]).expect("valid").only(), Some("refund"));
        for patterns in [&["refund", "order"][..], &["refund*"], &[]] {
            assert_eq!(scope(patterns).expect("valid").only(), None, "{patterns:?}");
        }
        assert_eq!(WorkflowScope::UNLIMITED.only(), None);
    }

    #[test]
    fn a_name_of_the_credential_counts_before_one_of_the_request() {
        let ada = Caller {
            name: Some("ada".into()),
            ..Caller::default()
        };
        assert_eq!(ada.or_named(Some("bob".into())), ada);
        assert_eq!(Caller::ANONYMOUS.or_named(Some("ada".into())), ada);
        assert_eq!(Caller::ANONYMOUS.or_named(None), Caller::ANONYMOUS);
    }

    #[test]
    fn a_union_contains_what_either_contains() {
        let both = scope(&["a*"])
            .expect("valid")
            .union(scope(&["b"]).expect("valid"));
        assert!(both.contains("ab") && both.contains("b") && !both.contains("c"));
        for pair in [
            (both.clone(), WorkflowScope::UNLIMITED),
            (WorkflowScope::UNLIMITED, both),
        ] {
            assert!(pair.0.union(pair.1).is_unlimited());
        }
    }

    #[test]
    fn characters_outside_of_ids_are_refused() {
        for pattern in ["", "Order", "a b", "a?", "[a]", "a/b", "ä", &"a".repeat(65)] {
            assert_eq!(scope(&[pattern]), None, "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(32);
        assert!(!scope(&[&pattern]).expect("valid").contains(&"b".repeat(64)));
    }

    #[test]
    fn the_wire_form() {
        let caller = Caller {
            name: Some("ada".into()),
            workflows: scope(&["order-*"]).expect("valid"),
        };
        let text = r#"{"name":"ada","workflows":["order-*"]}"#;
        assert_eq!(serde_json::to_string(&caller).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<Caller>(text).expect("a caller"), caller);
        assert_eq!(serde_json::to_string(&Caller::default()).expect("JSON"), "{}");
    }
}
