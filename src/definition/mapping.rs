//! Mappings whose keys are targets: `{"state.x": "${result.y}"}`.

use serde_json::Value;

use crate::base::text::shorten;
use crate::cel::Template;
use crate::definition::NOW;
use crate::definition::path::Path;
use crate::definition::problem::pointer_to;
use crate::definition::reader::{Reader, read_template};

pub type Mapping = Vec<(Path, Template)>;

/// `parse` reads a target, and `names` are the names that the templates may use.
pub(super) fn read_mapping(
    reader: &Reader,
    field: &'static str,
    names: &[&str],
    parse: fn(&str) -> Result<Path, String>,
) -> Option<Mapping> {
    let mut mapping = Vec::new();
    for (target, element) in reader.entries(field)? {
        let template = read_template(element.value, &element.pointer, names, reader.problems());
        match parse(target) {
            Ok(path) => mapping.extend(template.map(|template| (path, template))),
            Err(message) => reader
                .problems()
                .report(&element.pointer, "invalid_target", message),
        }
    }
    Some(mapping)
}

/// The names whose values come from outside of a task. A bare target of such a name would be a part of the output.
const NOT_WRITTEN: &[&str] = &["input", "run", "secret", "callback", NOW];

/// The mapping of a step, or of an `update_context`.
pub(super) fn read_task_mapping(reader: &Reader, field: &'static str, names: &[&str]) -> Option<Mapping> {
    // A document that an earlier build stored may write to `output.input`.
    if let Some(Value::Object(written)) = reader.value(field)
        && !reader.problems().is_prechecked()
    {
        for name in written.keys() {
            let first = name.split('.').next().unwrap_or_default();
            if NOT_WRITTEN.contains(&first) {
                let target = shorten(name);
                let message = format!(
                    "\"{target}\" is not a target: nothing writes to \"{first}\"; write to state.{target} or output.{target}"
                );
                let pointer = pointer_to(&reader.pointer_of(field), name);
                reader.problems().report(&pointer, "invalid_target", message);
            }
        }
    }
    read_mapping(reader, field, names, Path::parse_in_task)
}
