//! The pages in `docs/` are true: their examples are accepted and give the values they state, and every field, function and
//! variable of the code is on its page.

mod analysis;
mod completeness;
mod contract;
mod examples;
mod links;
mod logs;
mod simulations;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The directories of the gallery, each of which is an example that runs by itself.
fn gallery() -> Vec<String> {
    let entries = fs::read_dir(root().join("examples/gallery")).expect("the gallery");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let name = |path: PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .map(str::to_string)
    };
    let mut names: Vec<String> = paths.filter(|path| path.is_dir()).filter_map(name).collect();
    names.sort();
    names
}

/// Every workflow in `examples/` and in its gallery.
pub fn example_documents() -> Vec<PathBuf> {
    let of_gallery = gallery()
        .into_iter()
        .map(|name| format!("examples/gallery/{name}"));
    let mut documents: Vec<PathBuf> = std::iter::once("examples".to_string())
        .chain(of_gallery)
        .flat_map(|directory| fs::read_dir(root().join(directory)).expect("a directory of examples"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    documents.sort();
    documents
}

/// Every Markdown page that is written for readers of the repository.
fn pages() -> Vec<String> {
    let at_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_string);
    let mut pages = at_root.to_vec();
    let directories = ["docs", "examples", "examples/runner", "examples/monitoring"].map(str::to_string);
    let of_gallery = gallery()
        .into_iter()
        .map(|name| format!("examples/gallery/{name}"));
    for directory in directories.into_iter().chain(of_gallery) {
        let entries = fs::read_dir(root().join(&directory)).expect("a directory of pages");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name in UTF-8"));
        pages.extend(
            names
                .filter(|name| name.ends_with(".md"))
                .map(|name| format!("{directory}/{name}")),
        );
    }
    pages.retain(|page| root().join(Path::new(page)).exists());
    pages.sort();
    pages
}

/// A fenced block of a page.
pub struct Block {
    pub page: String,
    pub line: usize,
    /// What stands behind the opening fence: a language and, for this test, what the block holds.
    pub info: String,
    pub text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

pub fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in pages() {
        let mut open: Option<Block> = None;
        for (index, line) in read(&page).lines().enumerate() {
            match (&mut open, line.trim_start().strip_prefix("```")) {
                (None, Some(info)) => {
                    open = Some(Block {
                        page: page.clone(),
                        line: index + 1,
                        info: info.trim().to_string(),
                        text: String::new(),
                    });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{page}: a fence is not closed");
    }
    blocks
}
