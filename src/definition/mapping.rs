//! Mappings whose keys are targets: `{"state.x": "${result.y}"}`.

use crate::cel::Template;
use crate::definition::path::Path;
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
