//! The rooms of `src/` and which may use which. The table stands in ARCHITECTURE.md, under "Rooms"; this test reads it there and
//! compares it with every `crate::` path of the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Edges = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Rows `| room | what it owns | rooms it uses |` of the first table under the heading.
fn documented_edges() -> Edges {
    let text =
        fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is in the repository");
    let (_, section) = text.split_once("\n## Rooms\n").expect("a section \"Rooms\"");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [room, _, uses] = cells[..] else {
            panic!("three cells in {row}");
        };
        (names_in(room).remove(0), names_in(uses).into_iter().collect())
    })
    .collect()
}

/// What stands in backticks.
fn names_in(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn edges_of_code() -> Edges {
    let source = root().join("src");
    let mut edges = Edges::new();
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).expect("a file below src");
        let room = relative
            .iter()
            .next()
            .and_then(|part| part.to_str())
            .expect("a name");
        if room == "lib.rs" {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let uses = edges.entry(room.to_string()).or_default();
        for (at, _) in text.match_indices("crate::") {
            let name = text[at + "crate::".len()..].chars();
            let name: String = name
                .take_while(|it| it.is_ascii_lowercase() || *it == '_')
                .collect();
            assert!(
                !name.is_empty(),
                "{}: name one room in a `use crate::`",
                file.display()
            );
            if name != room {
                uses.insert(name);
            }
        }
    }
    edges
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of sources");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false => Vec::from_iter(Some(path).filter(|it| it.extension().is_some_and(|it| it == "rs"))),
        })
        .collect()
}

#[test]
fn rooms_use_each_other_as_the_table_says() {
    assert_eq!(edges_of_code(), documented_edges());
}

#[test]
fn no_room_uses_itself_through_others() {
    let mut edges = documented_edges();
    // A room that uses nothing is taken away, with every edge to it, until none is left. A cycle stays.
    while let Some(innermost) = edges
        .iter()
        .find_map(|(room, uses)| uses.is_empty().then(|| room.clone()))
    {
        edges.remove(&innermost);
        edges.values_mut().for_each(|uses| {
            uses.remove(&innermost);
        });
    }
    assert!(edges.is_empty(), "rooms in a cycle, or behind one: {edges:?}");
}
