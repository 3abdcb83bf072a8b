//! Which values of a path a condition accepts, by its form: `input.n < 10`, `10 <= input.n && input.n < 20`,
//! `input.kind == "a" || input.kind == "b"`, `input.kind in ["a", "b"]`, `!input.vip`.

use serde_json::Value;

use super::Expression;
use super::functions::Function;
use super::node::{Binary, Node, Selector};

/// The values of a path for which a condition holds. Of values of other types nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Numbers(Vec<Range>),
    Texts(Vec<String>),
    Bools(Vec<bool>),
}

/// Numbers between two bounds. None: there is no bound on this side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    from: Option<Bound>,
    to: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    at: f64,
    is_inside: bool,
}

/// The first part of the path of a size. No name looks like it.
pub const SIZE: &str = "size()";

/// More parts than conditions have that people write.
const PARTS_MAX: usize = 16;
/// Whole numbers up to this one are told apart.
const EXACT_MAX: i128 = 1 << 53;

impl Expression {
    /// The path that a condition looks at, and the values that it accepts. None if it looks at several, or is written otherwise.
    /// The size of something at a path has a path of its own, which begins with `SIZE`.
    pub fn accepted_values(&self) -> Option<(Vec<String>, Values)> {
        values_of(&self.program().as_ref().ok()?.root)
    }

    /// The condition is the constant `false`.
    pub fn is_false(&self) -> bool {
        matches!(self.program(), Ok(program) if matches!(program.root, Node::Bool(false)))
    }
}

impl Values {
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Values::Texts(texts), Value::String(text)) => texts.contains(text),
            (Values::Bools(bools), Value::Bool(bool)) => bools.contains(bool),
            (Values::Numbers(ranges), Value::Number(number)) => {
                let number = number.as_f64();
                number.is_some_and(|number| ranges.iter().any(|range| range.contains(number)))
            }
            (Values::Texts(_) | Values::Bools(_) | Values::Numbers(_), _) => false,
        }
    }

    /// Whether no value is accepted by both of two conditions on one path.
    pub fn excludes(&self, other: &Values) -> bool {
        match (self, other) {
            // A value that is no number is accepted by `!=` only, and those of two such conditions meet in numbers, too.
            (Values::Numbers(some), Values::Numbers(others)) => some
                .iter()
                .all(|one| others.iter().all(|other| one.and(*other).is_empty())),
            (Values::Texts(some), Values::Texts(others)) => some.iter().all(|text| !others.contains(text)),
            (Values::Bools(some), Values::Bools(others)) => some.iter().all(|bool| !others.contains(bool)),
            (Values::Numbers(_) | Values::Texts(_) | Values::Bools(_), _) => false,
        }
    }

    /// Whether every number is accepted by one of several conditions.
    pub fn cover_all_numbers<'a>(values: impl IntoIterator<Item = &'a Values>) -> bool {
        let ranges = values.into_iter().filter_map(|values| match values {
            Values::Numbers(ranges) => Some(ranges),
            Values::Texts(_) | Values::Bools(_) => None,
        });
        let mut open: Vec<Range> = ranges.flatten().copied().collect();
        // All below this is covered. None: nothing is.
        let mut covered: Option<Bound> = None;
        loop {
            let reaches = |range: &Range| match (range.from, covered) {
                (None, _) => true,
                (Some(_), None) => false,
                // One of the two has the number itself.
                (Some(from), Some(to)) => {
                    from.at < to.at || (from.at == to.at && (from.is_inside || to.is_inside))
                }
            };
            let Some(next) = open.iter().position(reaches) else {
                return false;
            };
            let Some(to) = open.swap_remove(next).to else {
                return true;
            };
            covered = Some(covered.map_or(to, |before| farther(before, to)));
        }
    }

    /// Whether every size is accepted by one of several conditions: 0, 1, 2 and so on.
    pub fn cover_all_sizes<'a>(values: impl IntoIterator<Item = &'a Values>) -> bool {
        let values: Vec<&Values> = values.into_iter().collect();
        let ranges = || {
            let ranges = values.iter().filter_map(|values| match values {
                Values::Numbers(ranges) => Some(ranges),
                Values::Texts(_) | Values::Bools(_) => None,
            });
            ranges.flatten().copied()
        };
        // What is accepted changes only at a bound, so the numbers next to each bound stand for all.
        let bounds = ranges().flat_map(|range| [range.from, range.to]).flatten();
        let beside =
            bounds.flat_map(|bound| [bound.at.ceil() - 1.0, bound.at.floor(), bound.at.floor() + 1.0]);
        let mut sizes = beside.filter(|size| *size >= 0.0).chain([0.0]);
        sizes.all(|size| ranges().any(|range| range.contains(size)))
    }

    fn and(self, other: Values) -> Option<Values> {
        match (self, other) {
            (Values::Numbers(some), Values::Numbers(others)) if some.len() * others.len() <= PARTS_MAX => {
                let both = some
                    .iter()
                    .flat_map(|one| others.iter().map(|other| one.and(*other)));
                Some(Values::Numbers(both.collect()))
            }
            (Values::Numbers(_) | Values::Texts(_) | Values::Bools(_), _) => None,
        }
    }

    fn or(self, other: Values) -> Option<Values> {
        let both = match (self, other) {
            (Values::Numbers(some), Values::Numbers(others)) => Values::Numbers([some, others].concat()),
            (Values::Texts(some), Values::Texts(others)) => Values::Texts([some, others].concat()),
            (Values::Bools(some), Values::Bools(others)) => Values::Bools([some, others].concat()),
            (Values::Numbers(_) | Values::Texts(_) | Values::Bools(_), _) => return None,
        };
        Some(both)
    }
}

fn farther(one: Bound, other: Bound) -> Bound {
    let is_other = other.at > one.at || (other.at == one.at && other.is_inside);
    if is_other { other } else { one }
}

impl Range {
    const ALL: Range = Range { from: None, to: None };

    fn contains(self, number: f64) -> bool {
        let is_above = self
            .from
            .is_none_or(|from| number > from.at || (from.is_inside && number == from.at));
        let is_below = self
            .to
            .is_none_or(|to| number < to.at || (to.is_inside && number == to.at));
        is_above && is_below
    }

    /// Empty ranges begin after their end, which does no harm where ranges are put together: they lie inside of both.
    fn and(self, other: Range) -> Range {
        let nearer =
            |one: Option<Bound>, other: Option<Bound>, is_nearer: fn(f64, f64) -> bool| match (one, other) {
                (Some(one), Some(other)) if one.at == other.at => Some(Bound {
                    at: one.at,
                    is_inside: one.is_inside && other.is_inside,
                }),
                (Some(one), Some(other)) => Some(if is_nearer(one.at, other.at) { one } else { other }),
                (bound, None) | (None, bound) => bound,
            };
        Range {
            from: nearer(self.from, other.from, |one, other| one > other),
            to: nearer(self.to, other.to, |one, other| one < other),
        }
    }

    fn is_empty(self) -> bool {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                from.at > to.at || (from.at == to.at && !(from.is_inside && to.is_inside))
            }
            (None, _) | (_, None) => false,
        }
    }
}

fn values_of(node: &Node) -> Option<(Vec<String>, Values)> {
    match node {
        Node::Binary(Binary::In, pair) => {
            let Node::List(elements) = &pair.1 else {
                return None;
            };
            let texts = elements.iter().map(|element| match element {
                Node::Text(text) => Some(text.clone()),
                _other => None,
            });
            Some((path_of(&pair.0)?, Values::Texts(texts.collect::<Option<_>>()?)))
        }
        Node::Binary(operator, pair) => match (compared_path_of(&pair.0), compared_path_of(&pair.1)) {
            (Some(path), None) => Some((path, compared(*operator, &pair.1)?)),
            (None, Some(path)) => Some((path, compared(operator.swapped(), &pair.0)?)),
            (Some(_), Some(_)) | (None, None) => None,
        },
        Node::And(pair) => joined(&pair.0, &pair.1, Values::and),
        Node::Or(pair) => joined(&pair.0, &pair.1, Values::or),
        Node::Not(inner) => Some((path_of(inner)?, Values::Bools(vec![false]))),
        other => Some((path_of(other)?, Values::Bools(vec![true]))),
    }
}

fn joined(
    one: &Node,
    other: &Node,
    join: fn(Values, Values) -> Option<Values>,
) -> Option<(Vec<String>, Values)> {
    let ((path, some), (other_path, others)) = (values_of(one)?, values_of(other)?);
    let mut values = join(some, others).filter(|_| path == other_path)?;
    if let Values::Numbers(ranges) = &mut values {
        ranges.retain(|range| !range.is_empty());
        if ranges.len() > PARTS_MAX {
            return None;
        }
    }
    Some((path, values))
}

/// The values on the left for which a comparison with a constant on the right holds.
fn compared(operator: Binary, constant: &Node) -> Option<Values> {
    match (operator, constant) {
        (Binary::Equal, Node::Text(text)) => return Some(Values::Texts(vec![text.clone()])),
        (Binary::Equal, Node::Bool(bool)) => return Some(Values::Bools(vec![*bool])),
        (Binary::NotEqual, Node::Bool(bool)) => return Some(Values::Bools(vec![!bool])),
        _number => {}
    }
    let at = number_of(constant)?;
    let bound = |is_inside: bool| Some(Bound { at, is_inside });
    let below = |is_inside: bool| Range {
        to: bound(is_inside),
        ..Range::ALL
    };
    let above = |is_inside: bool| Range {
        from: bound(is_inside),
        ..Range::ALL
    };
    let ranges = match operator {
        Binary::Less => vec![below(false)],
        Binary::LessOrEqual => vec![below(true)],
        Binary::Greater => vec![above(false)],
        Binary::GreaterOrEqual => vec![above(true)],
        Binary::Equal => vec![below(true).and(above(true))],
        Binary::NotEqual => vec![below(false), above(false)],
        Binary::Add
        | Binary::Subtract
        | Binary::Multiply
        | Binary::Divide
        | Binary::Remainder
        | Binary::In => return None,
    };
    Some(Values::Numbers(ranges))
}

fn number_of(node: &Node) -> Option<f64> {
    match node {
        Node::Int(number) if number.abs() <= EXACT_MAX => Some(*number as f64),
        Node::Double(number) => Some(*number),
        Node::Negate(inner) => Some(-number_of(inner)?),
        _other => None,
    }
}

/// A path of which every member must be there.
/// The path of what is compared: of a value, or of the size of one.
fn compared_path_of(node: &Node) -> Option<Vec<String>> {
    match node {
        Node::Call(Function::Size, operands) => {
            let [operand] = operands.as_slice() else {
                return None;
            };
            let mut path = vec![SIZE.to_string()];
            path.extend(path_of(operand)?);
            Some(path)
        }
        other => path_of(other),
    }
}

fn path_of(node: &Node) -> Option<Vec<String>> {
    match node {
        Node::Global(name) => Some(vec![name.clone()]),
        Node::Selection(selection) if !selection.lenient => {
            let mut path = path_of(&selection.operand)?;
            match &selection.selector {
                Selector::Field(member) | Selector::Index(Node::Text(member)) => path.push(member.clone()),
                Selector::Index(_) => return None,
            }
            Some(path)
        }
        _other => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(source: &str) -> Option<Values> {
        let (path, values) = Expression::new(source).accepted_values()?;
        assert_eq!(path, ["input", "n"], "{source}");
        Some(values)
    }

    #[test]
    fn ranges_cover_all_numbers_or_leave_a_gap() {
        for (conditions, expected) in [
            (
                &["input.n < 30", "input.n >= 30 && input.n < 70", "input.n >= 70"][..],
                true,
            ),
            (
                &["input.n > 70", "70 >= input.n && 30 < input.n", "30 >= input.n"],
                true,
            ),
            (&["input.n < 10", "10 <= input.n"], true),
            (
                &["input.n < 10 || input.n > 20", "input.n <= 20 && input.n >= 10"],
                true,
            ),
            (&["input.n != 5", "input.n == 5"], true),
            (&["input.n <= -1", "input.n > -1.0"], true),
            (&["input.n < 10", "input.n > 10"], false),
            (&["input.n < 10", "input.n >= 11"], false),
            (&["input.n >= 10", "input.n > 20"], false),
            (&["input.n < 30", "input.n >= 30 && input.n < 20"], false),
            (&["input.n < 30 && input.n > 40", "input.n >= 30"], false),
            (&["input.n == 1", "input.n == 2"], false),
        ] {
            let all: Vec<Values> = conditions.iter().filter_map(|source| values(source)).collect();
            assert_eq!(all.len(), conditions.len(), "{conditions:?}");
            assert_eq!(Values::cover_all_numbers(&all), expected, "{conditions:?}");
        }
    }

    #[test]
    fn sizes_are_whole_and_never_negative() {
        for (conditions, expected) in [
            (&["size(state.x) == 0", "size(state.x) > 0"][..], true),
            (&["state.x.size() < 1", "size(state.x) >= 1"], true),
            (&["0 == size(state.x)", "size(state.x) >= 1"], true),
            (
                &["size(state.x) == 0", "size(state.x) == 1", "size(state.x) > 1"],
                true,
            ),
            (
                &[
                    "size(state.x) <= 2",
                    "size(state.x) > 2 && size(state.x) < 5",
                    "size(state.x) > 4",
                ],
                true,
            ),
            (&["size(state.x) >= 0"], true),
            (&["size(state.x) > 0"], false),
            (&["size(state.x) == 0", "size(state.x) > 1"], false),
            (&["size(state.x) < 3", "size(state.x) > 3"], false),
        ] {
            let accepted = conditions
                .iter()
                .map(|source| Expression::new(*source).accepted_values());
            let all: Vec<Values> = accepted
                .flatten()
                .map(|(path, values)| {
                    assert_eq!(path, [SIZE, "state", "x"], "{conditions:?}");
                    values
                })
                .collect();
            assert_eq!(all.len(), conditions.len(), "{conditions:?}");
            assert_eq!(Values::cover_all_sizes(&all), expected, "{conditions:?}");
        }
    }

    #[test]
    fn conditions_exclude_each_other_where_no_value_fits_both() {
        for (one, other, expected) in [
            ("input.n < 10", "input.n >= 10", true),
            ("input.n < 10", "input.n > 9", false),
            ("input.n >= 30 && input.n < 70", "input.n >= 70", true),
            ("input.n != 5", "input.n == 5", true),
            ("input.n != 5", "input.n != 6", false),
            ("input.n in ['a', 'b']", "input.n == 'c'", true),
            ("input.n in ['a', 'b']", "input.n == 'b'", false),
            ("input.n", "!input.n", true),
            ("input.n == 'a'", "input.n == 1", false),
        ] {
            let (one, other) = (values(one).expect("read"), values(other).expect("read"));
            assert_eq!(one.excludes(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.excludes(&one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn constants_are_accepted() {
        for (source, accepted, refused) in [
            (
                "input.n == 'a' || 'b' == input.n",
                json!(["a", "b"]),
                json!(["c", true, 1]),
            ),
            ("input.n in ['a', 'b']", json!(["a", "b"]), json!(["c"])),
            ("input.n", json!([true]), json!([false])),
            ("!input.n", json!([false]), json!([true])),
            ("input.n != true", json!([false]), json!([true])),
            ("input.n > 1 && input.n <= 3", json!([2, 3]), json!([1, 4, "2"])),
        ] {
            let found = values(source).expect("it is a simple condition");
            for value in accepted.as_array().expect("a list") {
                assert!(found.accepts(value), "{source}: {value}");
            }
            for value in refused.as_array().expect("a list") {
                assert!(!found.accepts(value), "{source}: {value}");
            }
        }
    }

    #[test]
    fn other_conditions_are_left_alone() {
        for source in [
            "input.n < input.m",
            "input.n < 1 && input.m > 1",
            "input.n < 1 || input.n == 'a'",
            "input.?n == 'a'",
            "size(input.n) > input.m",
            "input.n < 9007199254740993",
            "input.n in input.list",
        ] {
            assert_eq!(Expression::new(source).accepted_values(), None, "{source}");
        }
        assert!(Expression::new("false").is_false() && !Expression::new("true").is_false());
    }
}
