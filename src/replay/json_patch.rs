//! JSON Patch (RFC 6902): the changes of a what-if. All or none of the operations apply.

use serde_json::Value;

use crate::api::error::Error;
use crate::base::limits::{DEPTH, DOCUMENT_BYTES, depth_of};
use crate::base::suggest::{closest, known_names};
use crate::base::text::{json_bytes, shorten};

/// More changes make another workflow.
pub const CHANGES_MAX: usize = 1_000;

/// All copies of a patch together. What they make of a document may be taken out again, so that it is more than a document may have.
const COPIES_BYTES: usize = 8 * DOCUMENT_BYTES;

const OPERATIONS: [&str; 6] = ["add", "copy", "move", "remove", "replace", "test"];

/// `changes` is the list of operations at `/changes` of a request.
pub fn apply(document: &mut Value, changes: &Value) -> Result<(), Error> {
    let Some(changes) = changes.as_array() else {
        return Err(invalid("/changes", "expected a list of JSON Patch operations"));
    };
    if changes.len() > CHANGES_MAX {
        let message = format!("{} changes; the limit is {CHANGES_MAX}", changes.len());
        return Err(Error::new(422, "limit_exceeded", message));
    }
    let mut copied = 0;
    let mut changed = document.clone();
    for (number, change) in changes.iter().enumerate() {
        let at = format!("/changes/{number}");
        apply_one(&mut changed, change, &at, &mut copied)?;
    }
    *document = changed;
    Ok(())
}

fn apply_one(document: &mut Value, change: &Value, at: &str, copied: &mut usize) -> Result<(), Error> {
    let text = |field: &str| {
        change[field].as_str().ok_or_else(|| {
            let message = format!("an operation has a text \"{field}\"");
            invalid(&format!("{at}/{field}"), message)
        })
    };
    let value = || {
        let message = "this operation has a \"value\"";
        change.get("value").cloned().ok_or_else(|| invalid(at, message))
    };
    let path = text("path")?;
    let path_at = format!("{at}/path");
    match text("op")? {
        "add" => add(document, path, value()?, &path_at),
        "remove" => remove(document, path, &path_at).map(drop),
        "replace" => {
            let value = value()?;
            check_depth(path, &value)?;
            *found(document, path, &path_at)? = value;
            Ok(())
        }
        "move" => {
            let from = text("from")?;
            if path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
                return Err(invalid(&path_at, "a value cannot be moved into itself"));
            }
            let moved = remove(document, from, &format!("{at}/from"))?;
            add(document, path, moved, &path_at)
        }
        "copy" => {
            let copy = found(document, text("from")?, &format!("{at}/from"))?.clone();
            *copied += json_bytes(&copy);
            if *copied > COPIES_BYTES {
                let message = format!("the copies have more than {COPIES_BYTES} bytes");
                return Err(Error::new(422, "limit_exceeded", message));
            }
            add(document, path, copy, &path_at)
        }
        "test" => match *found(document, path, &path_at)? == value()? {
            true => Ok(()),
            false => Err(invalid(
                &path_at,
                format!("the value at \"{}\" is another one", shorten(path)),
            )),
        },
        other => {
            let hint = closest(&OPERATIONS, other).map(|name| format!(": did you mean \"{name}\"?"));
            let shown: String = other.chars().take(40).collect();
            let message = format!(
                "\"{shown}\" is no operation of JSON Patch{} {}",
                hint.unwrap_or_default(),
                known_names(&OPERATIONS)
            );
            Err(invalid(&format!("{at}/op"), message))
        }
    }
}

/// A value that is put into itself again and again would become too deep for everything that walks it by recursion.
fn check_depth(path: &str, value: &Value) -> Result<(), Error> {
    let above = path.bytes().filter(|byte| *byte == b'/').count();
    match above + depth_of(value) > DEPTH {
        true => Err(Error::too_deep("the changed document")),
        false => Ok(()),
    }
}

fn invalid(pointer: &str, message: impl Into<String>) -> Error {
    Error::invalid_request(pointer, message)
}

fn found<'a>(document: &'a mut Value, path: &str, at: &str) -> Result<&'a mut Value, Error> {
    document
        .pointer_mut(path)
        .ok_or_else(|| invalid(at, format!("the document has nothing at \"{}\"", shorten(path))))
}

/// The parent of what `path` names, and its last part.
fn split<'a>(document: &'a mut Value, path: &str, at: &str) -> Result<(&'a mut Value, String), Error> {
    let Some((parent, last)) = path.rsplit_once('/') else {
        return Err(invalid(at, "a path begins with \"/\", like \"/nodes/2/timeout\""));
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    let message = format!(
        "the document has nothing at \"{}\", where \"{}\" belongs",
        shorten(parent),
        shorten(&last)
    );
    let parent = document.pointer_mut(parent).ok_or_else(|| invalid(at, message))?;
    Ok((parent, last))
}

fn add(document: &mut Value, path: &str, value: Value, at: &str) -> Result<(), Error> {
    check_depth(path, &value)?;
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (parent, last) = split(document, path, at)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(last, value);
            Ok(())
        }
        Value::Array(items) if last == "-" => {
            items.push(value);
            Ok(())
        }
        Value::Array(items) => match index(&last).filter(|index| *index <= items.len()) {
            Some(index) => {
                items.insert(index, value);
                Ok(())
            }
            None => Err(no_index(&last, items.len(), at)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(invalid(at, "only a list or an object has parts"))
        }
    }
}

fn remove(document: &mut Value, path: &str, at: &str) -> Result<Value, Error> {
    let (parent, last) = split(document, path, at)?;
    let nothing = || invalid(at, format!("the document has nothing at \"{}\"", shorten(path)));
    match parent {
        Value::Object(fields) => fields.remove(&last).ok_or_else(nothing),
        Value::Array(items) => match index(&last).filter(|index| *index < items.len()) {
            Some(index) => Ok(items.remove(index)),
            None => Err(no_index(&last, items.len(), at)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(nothing()),
    }
}

/// Without signs and leading zeros, as RFC 6901 has it.
fn index(text: &str) -> Option<usize> {
    let is_plain = text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

fn no_index(last: &str, length: usize, at: &str) -> Error {
    let shown: String = last.chars().take(40).collect();
    invalid(at, format!("\"{shown}\" is no place in a list of {length}"))
}
