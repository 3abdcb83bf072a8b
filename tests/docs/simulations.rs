//! The simulations on the pages have the answers that follow them.

use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, simulate_alone};
use serde_json::Value;

use super::{Block, blocks};

fn parse(block: &Block) -> Value {
    serde_json::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.place()))
}

/// What a page shows is part of what was answered. Lists are shown whole, item by item.
#[track_caller]
fn check_shown(shown: &Value, found: &Value, place: &str) {
    match (shown, found) {
        (Value::Object(fields), _) => {
            for (name, value) in fields {
                check_shown(value, &found[name], &format!("{place}/{name}"));
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            assert_eq!(items.len(), others.len(), "{place}: {found:#}");
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                check_shown(item, other, &format!("{place}/{index}"));
            }
        }
        (shown, found) => assert_eq!(found, shown, "{place}"),
    }
}

#[test]
fn simulations_have_the_answers_that_follow() {
    let blocks = blocks();
    let mut seen = 0;
    for pair in blocks.windows(2) {
        let [request, answer] = pair else { continue };
        if request.info != "json simulate" {
            continue;
        }
        assert_eq!(answer.info, "json simulated", "{}", answer.place());
        let found = simulate_alone(&parse(request), &TimeoutRules::default(), &Deployment::default());
        let found = found.unwrap_or_else(|error| panic!("{}: {}", request.place(), error.message));
        check_shown(&parse(answer), &found, &answer.place());
        seen += 1;
    }
    assert!(seen >= 3, "{seen}");
}
