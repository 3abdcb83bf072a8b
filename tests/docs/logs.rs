//! The events of log lines and the metrics are those in the tables of docs/operations.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use curfew::index::metrics::text::{Row, exposition};

use super::{read, root};

/// What comes before the name of an event in the source.
const MARKS: &[&str] = &[
    "\"event\": \"",
    " event: \"",
    "[\"event\"] = json!(\"",
    "log_error(\"",
];
/// As above, in the room `host` only: elsewhere it reports problems of documents.
const HOST_MARK: &str = ".report(\"";

fn names_after(text: &str, mark: &str) -> Vec<String> {
    let parts = text.split(mark).skip(1);
    let names = parts.map(|part| {
        part.chars()
            .take_while(|it| it.is_ascii_lowercase() || *it == '_')
    });
    names
        .map(String::from_iter)
        .filter(|name| !name.is_empty())
        .collect()
}

fn add_names(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).expect("a directory of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_names(&path, names);
            continue;
        }
        let extension = path.extension().and_then(|it| it.to_str());
        // The room `run` calls the events of a run so, and the room `api` their views; their kinds are added below.
        let is_source = matches!(extension, Some("rs" | "mjs")) && !path.starts_with(root().join("src/run"));
        if !is_source || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        // A name may stand on the line after the call.
        let code: String = code
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace("( \"", "(\"");
        for mark in MARKS {
            names.extend(names_after(&code, mark));
        }
        if path.starts_with(root().join("src/host")) {
            names.extend(names_after(&code, HOST_MARK));
        }
    }
}

/// The variants of `RunEventKind`, as lines name them.
fn kinds() -> Vec<String> {
    let text = read("src/run/time/event_log.rs");
    let (_, variants) = text.split_once("pub enum RunEventKind {").expect("the enum");
    let variants = variants.split('}').next().unwrap_or_default();
    let snake_case = |name: &str| {
        let parts = name
            .chars()
            .enumerate()
            .map(|(at, it)| match it.is_ascii_uppercase() && at > 0 {
                true => format!("_{}", it.to_ascii_lowercase()),
                false => it.to_ascii_lowercase().to_string(),
            });
        parts.collect::<String>()
    };
    variants
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(snake_case)
        .collect()
}

#[test]
fn every_event_of_a_log_line_is_in_the_table_and_the_other_way_round() {
    let mut logged: BTreeSet<String> = kinds().into_iter().collect();
    add_names(&root().join("src"), &mut logged);
    let page = read("docs/operations.md");
    let (_, section) = page.split_once("\n## Logs\n").expect("a section \"Logs\"");
    let section = section.split("\n## ").next().unwrap_or(section);
    let cells = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|row| row.split('|').nth(1));
    let documented: BTreeSet<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_string)
        .collect();
    let missing: Vec<_> = logged.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&logged).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing on the page: {missing:?}; not in the code: {unknown:?}"
    );
}

#[test]
fn every_metric_is_in_the_table_and_the_other_way_round() {
    // All of them: some are left out while there is nothing to show.
    let rows = [
        ("parked_since", "", "", 1),
        ("samples", "sweep", "{\"last/pass\": 1}", 0),
    ]
    .map(|(kind, node, text, number)| Row {
        kind: kind.into(),
        workflow: String::new(),
        node: node.into(),
        text: text.into(),
        number,
    });
    let text = exposition(rows.into(), 0);
    let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let shown: BTreeSet<String> = typed.map(str::to_string).collect();
    let page = read("docs/operations.md");
    let (_, section) = page.split_once("\n## Metrics\n").expect("a section \"Metrics\"");
    let section = section.split("\n### ").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let name = cells[1].trim_matches('`').split('{').next().unwrap_or_default();
            format!("{name} {}", cells[2])
        })
        .collect();
    assert_eq!(shown, documented);
}
