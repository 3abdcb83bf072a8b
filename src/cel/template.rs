//! Templates: JSON whose strings may contain `${expression}`.
//!
//! A template is split once and rendered many times. Splitting finds the end of
//! an expression with the scanner of `scan`, so a brace or a quote inside a CEL
//! string never ends it. Rendering is safe because all expressions of a template
//! share one budget, and the constant parts are no larger than their definition.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::budget::{Budget, Fault};
use super::value::{MAX_VALUE_DEPTH, plain_text};
use super::{Error, Expression, Names, Scope, scan};
use crate::base::compute::copy_steps;
use crate::base::ordered::object_of;

/// JSON in which strings may contain `${CEL}`. A string that is exactly one
/// placeholder becomes its value; with text around it, it becomes a string. `$${`
/// is a literal `${`. Object keys are not expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    root: Rc<Piece>,
}

#[derive(Debug, PartialEq)]
enum Piece {
    Constant(Value),
    Whole(Expression),
    Mixed(Vec<Segment>),
    List(Vec<Piece>),
    Map(Vec<(String, Piece)>),
}

#[derive(Debug, PartialEq)]
enum Segment {
    Text(String),
    Placeholder(Expression),
}

/// A part of a template that is one string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TextPart<'a> {
    Text(&'a str),
    Expression(&'a Expression),
}

/// Messages with the JSON pointers they refer to.
type TemplateErrors = Vec<(String, String)>;

impl Template {
    /// Splits strings into text and expressions. Expressions are not parsed yet.
    pub fn parse(value: &Value) -> Result<Template, TemplateErrors> {
        let mut errors = Vec::new();
        let root = Rc::new(split(value, &mut String::new(), 0, &mut errors));
        if errors.is_empty() {
            Ok(Template { root })
        } else {
            Err(errors)
        }
    }

    /// Parses every expression and returns the names that they read.
    pub fn check(&self) -> Result<Names, TemplateErrors> {
        let (mut names, mut errors) = (Names::new(), Vec::new());
        self.visit(&mut |expression, pointer| match expression.check() {
            Ok(found) => names.extend(found),
            Err(message) => {
                let error = expression.error(Fault::Failed(message));
                errors.push((pointer.to_string(), error.to_string()));
            }
        });
        if errors.is_empty() { Ok(names) } else { Err(errors) }
    }

    /// Calls `visitor` with every expression and the JSON pointer of its string.
    pub fn visit(&self, visitor: &mut impl FnMut(&Expression, &str)) {
        visit(&self.root, &mut String::new(), visitor);
    }

    /// Evaluates all expressions. The limits of one evaluation hold for the whole
    /// template, so that many small expressions cannot exceed them together.
    pub fn render(&self, scope: &Scope) -> Result<Value, Error> {
        render(&self.root, scope, &mut Budget::new(scope.meter), 0)
    }

    /// The parts of a template that is one string; none if it is anything else.
    pub fn text_parts(&self) -> Vec<TextPart<'_>> {
        match &*self.root {
            Piece::Constant(Value::String(text)) => vec![TextPart::Text(text)],
            Piece::Whole(expression) => vec![TextPart::Expression(expression)],
            Piece::Mixed(segments) => {
                let parts = segments.iter().map(|segment| match segment {
                    Segment::Text(text) => TextPart::Text(text),
                    Segment::Placeholder(expression) => TextPart::Expression(expression),
                });
                parts.collect()
            }
            Piece::Constant(_) | Piece::List(_) | Piece::Map(_) => Vec::new(),
        }
    }

    /// Whether rendering needs no scope.
    pub fn is_constant(&self) -> bool {
        matches!(*self.root, Piece::Constant(_))
    }
}

/// Calls `visit` with `name` appended to the pointer.
fn with_segment<T>(pointer: &mut String, name: &str, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let result = visit(pointer);
    pointer.truncate(length);
    result
}

fn split(value: &Value, pointer: &mut String, depth: usize, errors: &mut TemplateErrors) -> Piece {
    if depth > MAX_VALUE_DEPTH {
        let message = format!("template is nested deeper than {MAX_VALUE_DEPTH} levels");
        errors.push((pointer.clone(), message));
        return Piece::Constant(Value::Null);
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Piece::Constant(value.clone()),
        Value::String(text) => split_text(text).unwrap_or_else(|message| {
            errors.push((pointer.clone(), message));
            Piece::Constant(Value::Null)
        }),
        Value::Array(items) => {
            let mut pieces = Vec::with_capacity(items.len());
            for (place, item) in items.iter().enumerate() {
                pieces.push(with_segment(pointer, &place.to_string(), |pointer| {
                    split(item, pointer, depth + 1, errors)
                }));
            }
            fold_list(pieces)
        }
        Value::Object(entries) => {
            let mut pieces = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let piece = with_segment(pointer, key, |pointer| split(value, pointer, depth + 1, errors));
                pieces.push((key.clone(), piece));
            }
            fold_map(pieces)
        }
    }
}

/// A constant if all pieces are constants.
fn fold_list(pieces: Vec<Piece>) -> Piece {
    if !pieces.iter().all(|piece| matches!(piece, Piece::Constant(_))) {
        return Piece::List(pieces);
    }
    let values = pieces.into_iter().filter_map(constant);
    Piece::Constant(Value::Array(values.collect()))
}

fn fold_map(pieces: Vec<(String, Piece)>) -> Piece {
    let mut all = pieces.iter();
    if !all.all(|(_, piece)| matches!(piece, Piece::Constant(_))) {
        return Piece::Map(pieces);
    }
    let values = pieces.into_iter();
    let values = values.filter_map(|(key, piece)| Some((key, constant(piece)?)));
    Piece::Constant(Value::Object(object_of(values)))
}

fn constant(piece: Piece) -> Option<Value> {
    match piece {
        Piece::Constant(value) => Some(value),
        Piece::Whole(_) | Piece::Mixed(_) | Piece::List(_) | Piece::Map(_) => None,
    }
}

fn split_text(text: &str) -> Result<Piece, String> {
    let mut segments = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        literal.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix("$${") {
            literal.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let Some(length) = scan::placeholder_length(after) else {
                let column = text[..text.len() - rest.len()].chars().count() + 1;
                return Err(format!("`${{` at column {column} is not closed"));
            };
            if !literal.is_empty() {
                segments.push(Segment::Text(std::mem::take(&mut literal)));
            }
            let expression = Expression::new(after[..length].trim());
            segments.push(Segment::Placeholder(expression));
            rest = &after[length + 1..];
        } else {
            literal.push('$');
            rest = &rest[1..];
        }
    }
    literal.push_str(rest);
    if segments.is_empty() {
        return Ok(Piece::Constant(Value::String(literal)));
    }
    if !literal.is_empty() {
        segments.push(Segment::Text(literal));
    }
    match segments.as_slice() {
        [Segment::Placeholder(expression)] => Ok(Piece::Whole(expression.clone())),
        _ => Ok(Piece::Mixed(segments)),
    }
}

fn visit(piece: &Piece, pointer: &mut String, visitor: &mut impl FnMut(&Expression, &str)) {
    match piece {
        Piece::Constant(_) => {}
        Piece::Whole(expression) => visitor(expression, pointer),
        Piece::Mixed(segments) => {
            for segment in segments {
                match segment {
                    Segment::Text(_) => {}
                    Segment::Placeholder(expression) => visitor(expression, pointer),
                }
            }
        }
        Piece::List(pieces) => {
            for (place, piece) in pieces.iter().enumerate() {
                with_segment(pointer, &place.to_string(), |pointer| {
                    visit(piece, pointer, visitor)
                });
            }
        }
        Piece::Map(pieces) => {
            for (key, piece) in pieces {
                with_segment(pointer, key, |pointer| visit(piece, pointer, visitor));
            }
        }
    }
}

fn render<'a>(
    piece: &'a Piece,
    scope: &'a Scope<'a>,
    budget: &mut Budget<'a>,
    depth: usize,
) -> Result<Value, Error> {
    match piece {
        Piece::Constant(value) => constant_copy(value, budget),
        Piece::Whole(expression) => expression
            .value(scope, budget)?
            .into_json(budget, depth)
            .map_err(|fault| expression.error(fault)),
        Piece::Mixed(segments) => {
            let mut text = String::new();
            for segment in segments {
                match segment {
                    Segment::Text(literal) => text.push_str(literal),
                    Segment::Placeholder(expression) => {
                        let value = expression.value(scope, budget)?;
                        let part = plain_text(&value, budget)
                            .and_then(|part| {
                                budget.allocate(part.as_str().len() as u64)?;
                                Ok(part)
                            })
                            .map_err(|fault| expression.error(fault))?;
                        text.push_str(part.as_str());
                    }
                }
            }
            Ok(Value::String(text))
        }
        Piece::List(pieces) => {
            let values = pieces.iter().map(|piece| render(piece, scope, budget, depth + 1));
            Ok(Value::Array(values.collect::<Result<_, _>>()?))
        }
        Piece::Map(pieces) => {
            let mut values = Map::new();
            for (key, piece) in pieces {
                values.insert(key.clone(), render(piece, scope, budget, depth + 1)?);
            }
            Ok(Value::Object(values))
        }
    }
}

fn constant_copy(value: &Value, budget: &mut Budget) -> Result<Value, Error> {
    budget.charge_unit(copy_steps(value)).map_err(|fault| Error {
        expression: String::new(),
        is_unit_exhausted: true,
        message: fault.message(),
    })?;
    Ok(value.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: Value) -> Result<Value, Error> {
        let state = json!({"n": 3, "s": "a\"b", "list": [1, 2], "none": null});
        let template = Template::parse(&template).expect("splits");
        template.render(Scope::new().bind("state", &state))
    }

    #[test]
    fn rendering_keeps_types_and_joins_text() {
        for (template, expected) in [
            (json!("${state.n}"), json!(3)),
            (json!("${ state.list }"), json!([1, 2])),
            (json!("n=${state.n}!"), json!("n=3!")),
            (json!("${state.s}${state.none}"), json!("a\"bnull")),
            (json!("${state.list} ${ {'a': 1.0} }"), json!("[1,2] {\"a\":1.0}")),
            (json!("${'}'}"), json!("}")),
            (json!(r#"${"}" + '\'}' + r'\' + '''}'}'''}"#), json!(r"}'}\}'}")),
            (json!("${{'a': {'b': 1}}.a}"), json!({"b": 1})),
            (json!("${{'a': '}'}.a}}"), json!("}}")),
            (json!("$${state.n}"), json!("${state.n}")),
            (json!("$$${state.n}"), json!("$${state.n}")),
            (json!("$${${state.n}}"), json!("${3}")),
            (json!("5$ $5 {} $"), json!("5$ $5 {} $")),
            (json!("é${'é'}é"), json!("ééé")),
            (json!("${1 // } \n}"), json!(1)),
            (
                json!({"${a}": ["x", "${state.n + 1}"]}),
                json!({"${a}": ["x", 4]}),
            ),
        ] {
            let name = template.to_string();
            assert_eq!(rendered(template), Ok(expected), "{name}");
        }
    }

    #[test]
    fn templates_without_expressions_are_constant() {
        for (template, constant) in [
            (json!({"a": [1, "b", {"c": "$${x}"}]}), true),
            (json!(null), true),
            (json!({"a": [1, "${b}"]}), false),
            (json!("a${b}"), false),
        ] {
            assert_eq!(
                Template::parse(&template).map(|one| one.is_constant()),
                Ok(constant)
            );
        }
    }

    #[test]
    fn errors_have_pointers() {
        let problems = Template::parse(&json!({"a/b": ["x", "é ${1"], "c": "${'}", "d": "${{}"}));
        let open = |column| format!("`${{` at column {column} is not closed");
        assert_eq!(
            problems,
            Err(vec![
                ("/a~1b/1".into(), open(3)),
                ("/c".into(), open(1)),
                ("/d".into(), open(1)),
            ])
        );
        let root = Template::parse(&json!("${")).unwrap_err();
        assert_eq!(root, vec![(String::new(), open(1))]);
        let template = Template::parse(&json!(["${a}", {"k": "${1 +} and ${}"}])).unwrap();
        assert_eq!(
            template.check(),
            Err(vec![
                (
                    "/1/k".into(),
                    "expression `1 +`: column 4: unexpected end of expression".into()
                ),
                (
                    "/1/k".into(),
                    "expression ``: column 1: expression is empty".into()
                ),
            ])
        );
        let template = Template::parse(&json!(["${a + b}", "x${c}"])).unwrap();
        assert_eq!(template.check(), Ok(["a", "b", "c"].map(String::from).into()));
        let error = rendered(json!(["${state.n}", "${state.zzz}"])).unwrap_err();
        assert_eq!(error.to_string(), "expression `state.zzz`: no such key: zzz");
    }

    #[test]
    fn expressions_of_a_template_share_their_limits() {
        let state = json!("x".repeat(1 << 20));
        let template = |count| Template::parse(&json!(vec!["${state}"; count])).unwrap();
        let mut scope = Scope::new();
        scope.bind("state", &state);
        assert!(template(3).render(&scope).is_ok());
        let error = template(5).render(&scope).unwrap_err();
        assert!(error.message.starts_with("expression too expensive: "));
        assert_eq!(template(2), template(2).clone());
        assert_ne!(template(2), template(3));
    }
}
