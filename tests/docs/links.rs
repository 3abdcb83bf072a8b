//! Links between pages lead somewhere, and pages stay as short as they were meant to be.

use std::collections::BTreeSet;

use super::{pages, read, root};

/// The anchors that a page's headings make on GitHub.
fn anchors_of(page: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let mut anchors = BTreeSet::new();
    for line in read(page).lines() {
        in_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = heading.trim().to_lowercase().replace(' ', "-");
        anchors.insert(anchor.replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '_', ""));
    }
    anchors
}

fn links_of(page: &str) -> Vec<String> {
    let mut in_code = false;
    let mut links = Vec::new();
    for line in read(page).lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| target.to_string()));
    }
    links
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        for link in links_of(&page) {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let directory = page.rsplit_once('/').map_or("", |(directory, _)| directory);
            let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
            for part in path.split('/').filter(|part| !part.is_empty()) {
                match part {
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            let target = match path.is_empty() {
                true => page.clone(),
                false => parts.join("/"),
            };
            assert!(root().join(&target).exists(), "{page}: {link} leads to no file");
            if !anchor.is_empty() {
                assert!(
                    anchors_of(&target).contains(anchor),
                    "{page}: {target} has no heading for #{anchor}"
                );
            }
        }
    }
}

#[test]
fn pages_are_short() {
    for page in pages() {
        let most = match page.as_str() {
            "README.md" => 200,
            "ARCHITECTURE.md" => 250,
            _other => 400,
        };
        let lines = read(&page).lines().count();
        assert!(lines <= most, "{page} has {lines} lines; the limit is {most}");
    }
}

/// The last column of "Who can reach what": `file: "title", "title"; file: "title"`.
#[test]
fn tests_named_on_the_page_about_security_exist() {
    let text = read("docs/security.md");
    let (_, section) = text
        .split_once("\n## Who can reach what\n")
        .expect("the table of who can reach what");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    assert!(rows.len() > 8, "only {} rows were found", rows.len());
    for row in rows {
        let cell = row
            .trim_matches('|')
            .rsplit('|')
            .next()
            .unwrap_or_default()
            .trim();
        for part in cell.split("; ") {
            let (file, titles) = part.split_once(": ").unwrap_or((part, ""));
            let source = read(&format!("tests/workerd/{file}.test.ts"));
            for title in titles.split('"').skip(1).step_by(2) {
                assert!(
                    source.contains(title),
                    "docs/security.md names the test \"{title}\", which {file}.test.ts does not have"
                );
            }
        }
    }
}

/// Paths of the repository that stand in backticks.
#[test]
fn files_named_on_the_pages_exist() {
    const ROOTS: &[&str] = &[
        "bench/",
        "client/",
        "docs/",
        "examples/",
        "migrations/",
        "scripts/",
        "src/",
        "tests/",
        "tools/",
    ];
    for page in pages() {
        for name in read(&page).split('`').skip(1).step_by(2) {
            let is_path = ROOTS.iter().any(|prefix| name.starts_with(prefix)) && !name.contains(' ');
            assert!(
                !is_path || root().join(name).exists(),
                "{page}: there is no {name}"
            );
        }
    }
}
