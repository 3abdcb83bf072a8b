//! Data flow: paths into `state`, `output`, `input` and `_branch` that nothing writes, or that are not written on every way to the
//! place that reads them.
//!
//! Which names are written on every way to a node is a fixed point over sets of names: at first all of them, then fewer until
//! nothing changes. The number of names and of passes is bounded; where a bound is reached, less is reported.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::fans::has_result;
use crate::analysis::input_schema::unknown_member;
use crate::analysis::lint::Lint;
use crate::analysis::uses::{Moment, Use, Uses, item_vars, text_of};
use crate::base::suggest::closest;
use crate::base::text::shorten;
use crate::cel::ReadKind;
use crate::definition::path::{Path, Root};
use crate::definition::transition::TransitionOn;

/// Names that are followed along the ways.
const NAMES_MAX: usize = 512;
/// Passes over all transitions. Loops inside of loops need one each.
const PASSES_MAX: usize = 40;

pub fn check(lint: &Lint) {
    let uses = Uses::of(lint.snapshot, lint.graph.node_count);
    lint.graph.steps.add(uses.len());
    let writes = Writes::of(lint);
    let mut reported = BTreeSet::new();
    let flow = Flow {
        lint,
        ways: Ways::of(lint, &uses, &writes),
        writes,
        item_vars: item_vars(lint.document),
    };
    for found in &uses {
        let Some(message) = flow.problem_of(found) else {
            continue;
        };
        if reported.insert((found.pointer.clone(), message.clone())) {
            lint.warn(&found.pointer, "unwritten_path", message);
        }
    }
}

/// What is known of the data of a workflow.
struct Flow<'a> {
    lint: &'a Lint<'a>,
    writes: Writes,
    ways: Ways,
    item_vars: BTreeSet<String>,
}

/// What is written anywhere, by root and first name.
struct Writes {
    paths: BTreeMap<(Root, String), Vec<Path>>,
    /// What each node writes when it completes.
    of_node: Vec<Vec<Path>>,
}

impl Writes {
    fn of(lint: &Lint) -> Writes {
        let unbranched = unbranched(lint);
        let of_node: Vec<Vec<Path>> = (0..lint.graph.node_count)
            .map(|node| written_by(lint, node, unbranched[node]))
            .collect();
        let mut paths: BTreeMap<(Root, String), Vec<Path>> = BTreeMap::new();
        let merges = lint.graph.workflow.transitions.iter();
        let merges = merges.filter_map(|it| it.synchronization.as_ref()?.merge.as_ref());
        let all = of_node.iter().flatten().chain(merges.map(|merge| &merge.target));
        for path in all {
            lint.graph.steps.add(1);
            if let Some(first) = path.segments.first() {
                let same = paths.entry((path.root, first.clone())).or_default();
                if !same.contains(path) && same.len() < NAMES_MAX {
                    same.push(path.clone());
                }
            }
        }
        Writes { paths, of_node }
    }

    /// Whether a write makes the path, a part of it or something around it.
    fn reaches(&self, root: Root, members: &[String]) -> bool {
        let Some(first) = members.first() else {
            return true;
        };
        let written = self.paths.get(&(root, first.clone()));
        let overlaps =
            |path: &Path| members.starts_with(&path.segments) || path.segments.starts_with(members);
        written.is_some_and(|paths| paths.iter().any(overlaps))
    }

    /// The nearest path that is written, for a message.
    fn nearest(&self, root: Root, members: &[String]) -> String {
        /// Names that are compared.
        const COMPARED: usize = 100;
        let wanted = text_of(&Path {
            root,
            segments: members.to_vec(),
        });
        let known = self.paths.iter().filter(|((other, _), _)| *other == root);
        let known: Vec<String> = known
            .flat_map(|(_, paths)| paths.iter().map(text_of))
            .take(COMPARED)
            .collect();
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        match (closest(&names, &wanted), names.as_slice()) {
            (Some(name), _) => format!("did you mean \"{}\"?", shorten(name)),
            (None, []) => format!("nothing writes to {}", root.name()),
            (None, _) => {
                let listed: Vec<&str> = names.iter().take(6).copied().collect();
                format!("written are {}", shorten(&listed.join(", ")))
            }
        }
    }
}

/// Nodes that a token in no branch can come to.
fn unbranched(lint: &Lint) -> Vec<bool> {
    let mut reached = vec![false; lint.graph.node_count];
    let mut stack = vec![lint.graph.workflow.initial_node];
    while let Some(node) = stack.pop() {
        if std::mem::replace(&mut reached[node], true) {
            continue;
        }
        for tier in &lint.graph.tiers[node] {
            lint.graph.steps.add(1 + tier.plain.len());
            stack.extend(tier.plain.iter().map(|(_, to)| *to));
            stack.extend(tier.fans.iter().flat_map(|fan| fan.join_nodes.iter().copied()));
        }
    }
    reached
}

fn written_by(lint: &Lint, node: usize, may_be_unbranched: bool) -> Vec<Path> {
    let found = &lint.snapshot.workflow.nodes[node];
    match &found.output_mapping {
        Some(mapping) => mapping.iter().map(|(path, _)| path.clone()).collect(),
        // In a branch the result is the branch's.
        None if has_result(&found.kind) && may_be_unbranched => vec![Path {
            root: Root::State,
            segments: vec![found.id.clone()],
        }],
        None => Vec::new(),
    }
}

/// Which names are written on every way to each node.
struct Ways {
    names: BTreeMap<(Root, String), usize>,
    /// By node. Empty if the number of passes was not enough.
    before: Vec<Vec<u64>>,
    after: Vec<Vec<u64>>,
}

impl Ways {
    fn of(lint: &Lint, uses: &[Use], writes: &Writes) -> Ways {
        let mut names = BTreeMap::new();
        for found in uses
            .iter()
            .filter(|it| it.read.kind == ReadKind::Certain && !it.is_guarded)
        {
            if let Some((root, [first, ..])) = root_of(&found.read.path)
                && writes.paths.contains_key(&(root, first.clone()))
                && names.len() < NAMES_MAX
            {
                let next = names.len();
                names.entry((root, first.clone())).or_insert(next);
            }
        }
        let words = names.len().div_ceil(64);
        let set_of = |paths: &[Path]| {
            let mut set = vec![0u64; words];
            for path in paths {
                let name = path.segments.first().map(|first| (path.root, first.clone()));
                if let Some(&number) = name.and_then(|name| names.get(&name)) {
                    set[number / 64] |= 1 << (number % 64);
                }
            }
            set
        };
        let written: Vec<Vec<u64>> = writes.of_node.iter().map(|paths| set_of(paths)).collect();
        let count = lint.graph.node_count;
        let mut before = vec![vec![u64::MAX; words]; count];
        before[lint.graph.workflow.initial_node] = vec![0; words];
        let transitions = &lint.graph.workflow.transitions;
        let merged: Vec<Option<Vec<u64>>> = transitions
            .iter()
            .map(|it| {
                let target = &it.synchronization.as_ref()?.merge.as_ref()?.target;
                Some(set_of(std::slice::from_ref(target)))
            })
            .collect();
        let mut is_settled = words == 0;
        for _ in 0..PASSES_MAX {
            if is_settled {
                break;
            }
            is_settled = true;
            lint.graph.steps.add(transitions.len() * words);
            for (index, transition) in transitions.iter().enumerate() {
                if !lint.graph.reachable[transition.from] {
                    continue;
                }
                for word in 0..words {
                    let mut brought = before[transition.from][word];
                    if transition.on == TransitionOn::Success {
                        brought |= written[transition.from][word];
                    }
                    if let Some(merged) = &merged[index] {
                        brought |= merged[word];
                    }
                    let kept = before[transition.to][word] & brought;
                    is_settled &= kept == before[transition.to][word];
                    before[transition.to][word] = kept;
                }
            }
        }
        if !is_settled {
            before.clear();
        }
        let after = before
            .iter()
            .zip(&written)
            .map(|(before, written)| {
                before
                    .iter()
                    .zip(written)
                    .map(|(one, other)| one | other)
                    .collect()
            })
            .collect();
        Ways { names, before, after }
    }

    /// Whether a name is written on every way to a moment. True where that is not known.
    fn is_written(&self, root: Root, first: &str, moment: Moment) -> bool {
        let (sets, node) = match moment {
            Moment::At(node) => (&self.before, node),
            Moment::After(node) => (&self.after, node),
            Moment::End => return true,
        };
        let number = self.names.get(&(root, first.to_string()));
        match (number, sets.get(node)) {
            (Some(&number), Some(set)) => set[number / 64] >> (number % 64) & 1 == 1,
            (None, _) | (_, None) => true,
        }
    }
}

/// The root of a path that mappings write to, and the members below it.
fn root_of(path: &[String]) -> Option<(Root, &[String])> {
    let (first, members) = path.split_first()?;
    match first.as_str() {
        "state" => Some((Root::State, members)),
        "output" => Some((Root::Output, members)),
        _other => None,
    }
}

impl Flow<'_> {
    fn problem_of(&self, found: &Use) -> Option<String> {
        let lint = self.lint;
        if found.is_guarded || !is_reachable(lint, found.moment) {
            return None;
        }
        let path = &found.read.path;
        let text = shorten(&path.join("."));
        if let Some((root, members)) = root_of(path) {
            let first = members.first()?;
            if !self.writes.reaches(root, members) {
                let nearest = match lint.is_full() {
                    true => String::new(),
                    false => self.writes.nearest(root, members),
                };
                return Some(format!("nothing writes \"{text}\"; {nearest}"));
            }
            let is_certain = found.read.kind == ReadKind::Certain;
            if is_certain && !self.ways.is_written(root, first, found.moment) {
                let name = format!("{}.{first}", root.name());
                let way = match lint.is_full() {
                    true => String::new(),
                    false => missing_way(lint, &self.ways, root, first, found.moment),
                };
                return Some(format!(
                    "\"{name}\" is not written on every way to this place{way}; write it on the others, too, or ask \
                     has({name}) first"
                ));
            }
            return None;
        }
        match path.split_first() {
            Some((first, members)) if first == "input" => unknown_input(lint, &text, members),
            Some((first, members)) if first == "_branch" => unknown_branch(lint, found.moment, members),
            Some((first, _)) if self.item_vars.contains(first) => item_outside(lint, found.moment, first),
            Some(_) | None => None,
        }
    }
}

fn is_reachable(lint: &Lint, moment: Moment) -> bool {
    match moment {
        Moment::At(node) | Moment::After(node) => lint.graph.reachable[node],
        Moment::End => true,
    }
}

/// A transition by which a token comes without the name.
fn missing_way(lint: &Lint, ways: &Ways, root: Root, first: &str, moment: Moment) -> String {
    let (Moment::At(node) | Moment::After(node)) = moment else {
        return String::new();
    };
    if node == lint.graph.workflow.initial_node {
        return ": a run starts here".into();
    }
    let transitions = &lint.graph.workflow.transitions;
    lint.graph.steps.add(transitions.len());
    let lacks = |it: &&crate::definition::transition::Transition| {
        let moment = match it.on {
            TransitionOn::Success => Moment::After(it.from),
            TransitionOn::Failure | TransitionOn::Timeout => Moment::At(it.from),
        };
        it.to == node && lint.graph.reachable[it.from] && !ways.is_written(root, first, moment)
    };
    match transitions.iter().find(lacks) {
        Some(transition) => format!(": not by transition \"{}\"", transition.id),
        None => String::new(),
    }
}

pub(super) fn unknown_input(lint: &Lint, text: &str, members: &[String]) -> Option<String> {
    let schema = lint.document.get("input_schema")?;
    let unknown = unknown_member(schema, members)?;
    let member = &members[unknown.depth];
    let nearest = match closest(&unknown.known, member) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("it knows {}", shorten(&unknown.known.join(", "))),
    };
    Some(format!(
        "input_schema does not know \"{}\" of \"{text}\"; {nearest}",
        shorten(member)
    ))
}

fn unknown_branch(lint: &Lint, moment: Moment, members: &[String]) -> Option<String> {
    const MEMBERS: &[&str] = &["index", "total", "item", "output"];
    if let Some(member) = members
        .first()
        .filter(|member| !MEMBERS.contains(&member.as_str()))
    {
        return Some(format!(
            "\"_branch\" has no \"{}\"; it has {}",
            shorten(member),
            MEMBERS.join(", ")
        ));
    }
    let (Moment::At(node) | Moment::After(node)) = moment else {
        return None;
    };
    let is_outside = !members.is_empty() && !lint.graph.in_branch[node];
    is_outside
        .then(|| "no fan-out leads here, so there is no \"_branch\"; read what the join merged".to_string())
}

/// The item of a `foreach` is only there in its branches.
fn item_outside(lint: &Lint, moment: Moment, name: &str) -> Option<String> {
    let (Moment::At(node) | Moment::After(node)) = moment else {
        return None;
    };
    let is_outside = !lint.graph.in_branch[node];
    is_outside.then(|| {
        format!("\"{name}\" is the item of a fan-out, and none leads here; read what the join merged")
    })
}
