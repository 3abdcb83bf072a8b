//! Every code of `docs/analysis.md` has a wrong document, which gives exactly that code at the pointer behind its fence, and a right
//! one, which gives nothing.

use std::collections::BTreeSet;

use curfew::analysis::WARNINGS;
use serde_json::{Value, json};

use super::{blocks, read};
use crate::analysis::{analysis_of, codes};

const PAGE: &str = "docs/analysis.md";

/// The codes of the page's headings, with their lines.
fn headings() -> Vec<(usize, String)> {
    let page = read(PAGE);
    let lines = page.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let code = line.strip_prefix("### `")?.strip_suffix('`')?;
            Some((index + 1, code.to_string()))
        })
        .collect()
}

#[test]
fn wrong_documents_give_their_code_and_right_ones_none() {
    let headings = headings();
    let (mut wrong, mut right) = (BTreeSet::new(), BTreeSet::new());
    for block in blocks().into_iter().filter(|block| block.page == PAGE) {
        let above = headings.iter().rev().find(|(line, _)| *line < block.line);
        let (_, code) = above.expect("every document is below a code");
        let mut document: Value = serde_json::from_str(&block.text).expect("a document is JSON");
        document["id"] = json!("w");
        let analysis = analysis_of(&document);
        let found = codes(&analysis);
        match block.info.split(' ').collect::<Vec<_>>().as_slice() {
            ["json", "wrong", pointer] => {
                assert_eq!(found, [(code.as_str(), *pointer)], "{code}: {analysis:?}");
                wrong.insert(code.clone());
            }
            ["json", "right"] => {
                assert_eq!(found, [], "{code}: {analysis:?}");
                assert!(analysis.facts.is_some(), "{code}");
                right.insert(code.clone());
            }
            other => panic!("{PAGE}:{} is {other:?}", block.line),
        }
    }
    let codes: BTreeSet<String> = headings.into_iter().map(|(_, code)| code).collect();
    assert_eq!((&wrong, &right), (&codes, &codes), "each code has both documents");
    let missing: Vec<&&str> = WARNINGS.iter().filter(|code| !codes.contains(**code)).collect();
    // It has a sentence, and 200 other warnings.
    assert_eq!(missing, [&"more_warnings"]);
}
