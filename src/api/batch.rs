//! `POST /v1/runs:batch`: several starts in one request, each with an outcome of its own. Pure: the body in, its items out, and the
//! outcomes in their order.

use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::base::limits::BATCH_STARTS;
use crate::definition::reader::Reader;

/// The answer repeats runs up to this size. Later ones are cut to their id: 100 contexts could exceed the memory of a Worker.
const RUNS_BYTES: usize = 4 << 20;

/// The items of the body `{items}`. What is wrong with one of them is the outcome of that item.
pub fn items(body: &Value) -> Result<&[Value], Error> {
    control::read(body, |reader: &Reader| {
        reader.require("items");
        let items = reader.array("items");
        if body["items"].is_array() && !(1..=BATCH_STARTS).contains(&items.len()) {
            let message = format!("{} starts; a batch has 1 to {BATCH_STARTS} of them", items.len());
            reader.report("items", "limit_exceeded", message);
        }
        Some(())
    })?;
    Ok(body["items"].as_array().map_or(&[], Vec::as_slice))
}

/// The items to start, in groups. Items of one group have the same run id and are started one after the other, so that they get
/// what two requests in a row would get. An item without a run id is a group of its own.
pub fn groups(items: &[Value]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let id = item["run_id"].as_str();
        let same = |group: &&mut Vec<usize>| id.is_some() && items[group[0]]["run_id"].as_str() == id;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// The status and the body that a start of its own would have been answered with.
pub type StartAnswer = (u16, String);

pub fn refused(error: &Error) -> StartAnswer {
    (error.status, error.body().to_string())
}

/// The body of the response.
pub fn response(answers: Vec<StartAnswer>) -> Value {
    let mut free_bytes = RUNS_BYTES;
    let items = answers.into_iter().map(|(status, text)| {
        let mut body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status >= 400 {
            return json!({"status": status, "error": body["error"].take()});
        }
        match free_bytes.checked_sub(text.len()) {
            Some(left) => free_bytes = left,
            None => body = json!({"id": body["id"], "truncated": true}),
        }
        json!({"status": status, "run": body})
    });
    json!({"items": items.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_1_to_100_items() {
        let many = |count: usize| json!({"items": vec![json!({}); count]});
        for count in [1, 100] {
            assert_eq!(items(&many(count)).map(<[Value]>::len), Ok(count));
        }
        for (body, status, part) in [
            (many(0), 422, "0 starts; a batch has 1 to 100 of them"),
            (many(101), 422, "101 starts; a batch has 1 to 100 of them"),
            (json!({}), 422, "items"),
            (json!([]), 422, "expected an object"),
            (json!({"items": {}}), 422, "expected an array"),
            (json!({"item": []}), 400, "did you mean \"items\"?"),
            (json!({"items": [1], "wait_ms": 5}), 400, "unknown field"),
        ] {
            let error = items(&body).expect_err(part);
            assert_eq!(error.status, status, "{body}: {}", error.message);
            assert!(error.message.contains(part), "{body}: {}", error.message);
        }
    }

    #[test]
    fn starts_of_one_run_follow_each_other() {
        let items = [
            json!({"run_id": "a"}),
            json!({}),
            json!({"run_id": "b"}),
            json!({"run_id": "a"}),
            json!(5),
            json!({"run_id": "a"}),
        ];
        assert_eq!(groups(&items), [vec![0, 3, 5], vec![1], vec![2], vec![4]]);
    }

    #[test]
    fn the_answer_is_bounded() {
        let large = json!({"id": "large", "output": "x".repeat(RUNS_BYTES - 100)}).to_string();
        let small = json!({"id": "small", "output": "x".repeat(200)}).to_string();
        let missing = refused(&Error::not_found("workflow \"w\""));
        let answers = vec![(201, large.clone()), (200, small), missing, (201, "{}".into())];
        let response = response(answers);
        assert_eq!(
            response["items"][1],
            json!({"status": 200, "run": {"id": "small", "truncated": true}})
        );
        let error = json!({"code": "not_found", "message": "workflow \"w\" does not exist"});
        assert_eq!(response["items"][2], json!({"status": 404, "error": error}));
        assert_eq!(response["items"][3], json!({"status": 201, "run": {}}));
        assert!(response.to_string().len() < RUNS_BYTES + 1_000);
    }
}
