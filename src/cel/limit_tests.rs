//! Tests of rejected expressions, and of the bounds on hostile expressions and data.

use serde_json::{Value, json};

use super::*;

fn evaluate(source: &str, state: &Value) -> Result<Value, Error> {
    let mut scope = Scope::new();
    scope.bind("state", state);
    Expression::new(source).evaluate(&scope)
}

#[track_caller]
fn too_expensive(source: &str, state: &Value) {
    let error = evaluate(source, state).unwrap_err();
    assert!(error.message.starts_with("expression too expensive: "), "{error}");
}

#[test]
fn check_rejects_with_a_position() {
    for (source, expected) in [
        ("", "column 1: expression is empty"),
        ("1 +", "column 4: unexpected end of expression"),
        ("(1", "column 1: `(` is not closed"),
        ("[1)", "column 3: unexpected `)`"),
        ("1 2", "column 3: unexpected `2`"),
        ("'é' 2", "column 5: unexpected `2`"),
        ("1 +\n * 2", "line 2, column 2: unexpected `*`"),
        ("a = 1", "column 3: unexpected `=`, compare with `==`"),
        ("a # b", "column 3: unexpected `#`"),
        ("é", "column 1: unexpected `é`"),
        ("'abc", "column 1: string is not closed"),
        ("1 + b'abc'", "column 5: bytes literals are not supported"),
        ("a.B{c: 1}", "column 4: struct literals are not supported"),
        ("99999999999999999999", "column 1: invalid int literal"),
        (
            "1 + startswith('a')",
            "column 5: unknown function startswith, did you mean startsWith?",
        ),
        ("parseJson('a')", "did you mean parse_json?"),
        (
            "matches('a', 'b')",
            "unknown function matches, known are abs, bool, ",
        ),
        (
            "size(1) + size()",
            "column 11: wrong call of size, expected size(value)",
        ),
        ("contains('a', 'b')", "expected text.contains(part)"),
        ("'a'.int()", "wrong call of int, expected int(value)"),
        (
            "[1].map(i)",
            "column 5: wrong call of map, expected list.map(item, result)",
        ),
        ("[1].map(1, 2)", "argument must be a simple name"),
        ("has(a)", "invalid argument to has() macro"),
        (
            "1 + a.?b",
            "column 6: an optional value needs .orValue(default) or .hasValue()",
        ),
        (
            "a.?b.size()",
            "an optional value needs .orValue(default) before .size",
        ),
        ("a.b.orValue(1)", "column 5: orValue needs an optional value"),
        ("[?a.?b]", "optional list elements are not supported"),
        (".a", "unexpected `.` before a"),
        ("1 '''a\nb'''", "column 3: unexpected `'''a b'''`"),
        ("for", "reserved identifier: for"),
    ] {
        let message = Expression::new(source).check().unwrap_err();
        assert!(message.contains(expected), "{source}: {message}");
        assert!(!message.contains('\n'), "{source}: {message}");
    }
    let names = Expression::new("a.b + [c].map(d, d + e).size() + size(f)").check();
    assert_eq!(names, Ok(["a", "c", "e", "f"].map(String::from).into()));
    // The same name outside its comprehension belongs to the scope.
    assert_eq!(
        Expression::new("[1].map(d, d) + d").check(),
        Ok(["d".into()].into())
    );
}

#[test]
fn exponential_expressions_are_stopped() {
    let many: Vec<Value> = (0..1_000).map(|n| json!({"n": n})).collect();
    let same = vec![json!(vec![7; 1_000]); 200];
    let state = json!({"l": vec![1; 400], "s": "x".repeat(1024), "t": "x".repeat(1 << 20), "many": many, "same": same});
    let nested = "state.l.map(a, state.l.map(b, state.l.map(c, a + b + c)))";
    let doubling = format!("[state.s]{}", ".map(a, a + a)".repeat(40));
    for source in [
        nested,
        &doubling,
        "state.l.exists(a, state.l.exists(b, state.l.exists(c, false)))",
        // `||` does not absorb exhaustion.
        "state.l.all(a, state.l.all(b, state.l.all(c, true))) || true",
        "true && state.l.map(a, state.l.map(b, state.l)).size() > 0",
        "state.l.map(a, state.l + state.l).map(a, a + a)",
        "state.t.replace('', state.s)",
        "state.t.split('').size()",
        "state.l.map(a, state.t == state.t)",
        "state.l.map(a, state.t in state)",
        "state.l.map(a, state[?state.t].orValue(1))",
        "state.l.map(a, int(state.t) == 1 || true)",
        "[1].map(a, [a, a]).map(a, [a, a]).map(a, [a, a, a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a, a, a])",
        "state.l.map(a, state.t.contains('y'))",
        "state.l.map(a, state.t).join('')",
        "state.l.map(a, state.l.sum())",
        "state.l.map(a, state.l).flatten().map(a, 1)",
        "state.l.map(a, state.l).flatten().distinct()",
        "state.l.map(a, state.l.distinct())",
        "state.l.map(a, [a, state.t]).flatten().distinct()",
        // Maps and lists are compared in pairs.
        "state.many.distinct()",
        "state.same.distinct()",
        "state.l.map(a, state)",
        "parse_json('[' + state.t.replace('x', '1,') + '1]')",
        "json('\\u0001' + state.t.replace('x', '\\u0001'))",
    ] {
        too_expensive(source, &state);
    }
}

#[test]
fn large_state_is_read_in_place_and_copied_within_limits() {
    let many = json!({"items": vec![json!({"a": 1, "b": "text"}); 50_000]});
    assert_eq!(evaluate("state.items.size()", &many), Ok(json!(50_000)));
    assert_eq!(evaluate("state.items[49999].b", &many), Ok(json!("text")));
    assert_eq!(evaluate("state.items == 1", &many), Ok(json!(false)));
    too_expensive("state", &many);
    too_expensive("json(state)", &many);
    too_expensive("state == state", &many);
    let few = json!({"text": "x".repeat(1 << 20)});
    assert_eq!(evaluate("state", &few).as_ref(), Ok(&few));
    let huge = json!({"text": "x".repeat(5 << 20)});
    assert_eq!(evaluate("state.text != 'x'", &huge), Ok(json!(true)));
    too_expensive("state.text", &huge);
}

#[test]
fn depth_is_bounded_on_a_small_stack() {
    let repeated = |unit: &str| unit.repeat(4096 / unit.len());
    let mut sources = vec![
        format!("{}1{}", "(".repeat(2047), ")".repeat(2047)),
        format!("{}1{}", "(1+".repeat(1000), ")".repeat(1000)),
        format!("{}1{}", "[".repeat(2000), "]".repeat(2000)),
        format!("{}1{}", "{1:".repeat(1000), "}".repeat(1000)),
        format!("{}1{}", "size(".repeat(600), ")".repeat(600)),
        format!("{}1{}", "[1].map(a,".repeat(300), ")".repeat(300)),
        format!("{}1{}", "((1)+".repeat(600), ")".repeat(600)),
        format!("{}1", repeated("-!")),
        format!("{}1", repeated("a?b:")),
        format!("{}1", "true?b&&c:".repeat(400)),
        format!("{}1", repeated("1+")),
        format!("a{}", repeated(".a")),
        format!("a{}", repeated("[0]")),
        format!("a{}", repeated(".f()")),
        format!("a{}", "[1".repeat(1000)),
        format!("1{}", ",+1".repeat(1000)),
    ];
    sources.extend(["(", "[", "{", "-", "!", "a?", "a(", "''"].map(repeated));
    // Nesting just within the limits, in the shapes that use most stack per level.
    for depth in [20, 40, 60, 63, 98] {
        sources.push(format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
        sources.push(format!("{}1{}", "[1].map(a,".repeat(depth), ")".repeat(depth)));
        sources.push(format!(
            "{}1{}",
            "false||true&&1==1+1*size([".repeat(depth),
            "])".repeat(depth)
        ));
        sources.push(format!("{}1", "true?1:".repeat(depth)));
        sources.push(format!("{}1", "false?1:".repeat(depth)));
        // Chained macros nest a value far deeper than its expression.
        let wrap = format!(".map(a,{}a{})", "[".repeat(30), "]".repeat(30));
        sources.push(format!("[1]{}.size()", wrap.repeat(depth / 2)));
    }
    let handle = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        for source in sources {
            let _outcome = evaluate(&source, &Value::Null);
        }
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        assert!(evaluate(&deep, &Value::Null).is_ok());
        let wrap = format!(".map(a,{}a{})", "[".repeat(28), "]".repeat(28));
        let wrapped = format!("[1]{}.size()", wrap.repeat(30));
        assert_eq!(evaluate(&wrapped, &Value::Null), Ok(json!(1)));
        let wide = vec!["true"; 500].join(" && ");
        assert_eq!(evaluate(&wide, &Value::Null), Ok(json!(true)));
    });
    assert!(handle.unwrap().join().is_ok());
    let long = Expression::new(" ".repeat(4097)).check().unwrap_err();
    assert_eq!(long, "column 1: expression is longer than 4096 characters");
    let deep = Expression::new("-!".repeat(2048)).check().unwrap_err();
    assert_eq!(deep, "column 1: expression is nested too deeply");
}

#[test]
fn deep_values_are_rejected_not_traversed() {
    let mut deep = json!(1);
    for _ in 0..2000 {
        deep = Value::Array(vec![deep]);
    }
    for source in ["state", "state == state", "json(state)", "state in [state]"] {
        let error = evaluate(source, &deep).unwrap_err();
        assert_eq!(error.message, "value is nested deeper than 100 levels");
    }
    assert_eq!(evaluate("state.size()", &deep), Ok(json!(1)));
    let text = json!(format!("{}{}", "[".repeat(5000), "]".repeat(5000)));
    assert!(evaluate("parse_json(state)", &text).is_err());
    assert!(Template::parse(&deep).is_err());
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn garbage_never_panics() {
    const PIECES: &[&str] = &[
        "a",
        "state",
        "1",
        "0x",
        "1.5",
        "1e",
        "9223372036854775808",
        "'",
        "\"",
        "'''",
        "r'",
        "b\"",
        "\\",
        "\\u12",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ".?",
        "[?",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "!",
        "==",
        "=",
        "<=",
        "&&",
        "&",
        "||",
        "in",
        " in ",
        "true",
        "null",
        "has(",
        "size(",
        ".map(x,",
        ".filter(x,",
        ".all(",
        ".orValue(",
        "é",
        "\u{1F600}",
        "\n",
        "\r",
        " ",
        "$",
        "${",
        "$${",
        "`",
        "@",
        "\0",
        "for",
        ".split(",
        ".distinct(",
        ".flatten(",
        ".sum(",
        ".substring(",
        "max(",
        "json(",
        "'a'",
    ];
    let state = json!({"a": [1, {"b": "é"}], "s": "text"});
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..20_000 {
        let mut source = String::new();
        for _ in 0..random.below(14) {
            source.push_str(PIECES[random.below(PIECES.len())]);
        }
        let _outcome = evaluate(&source, &state);
        if let Ok(template) = Template::parse(&json!([source, format!("${{{source}}}")])) {
            let _problems = template.check();
            let _outcome = template.render(Scope::new().bind("state", &state));
        }
    }
    for _ in 0..10_000 {
        let source: String = (0..random.below(40))
            .filter_map(|_| char::from_u32(random.below(0x250) as u32))
            .collect();
        let _outcome = evaluate(&source, &state);
    }
}

/// Mutated valid expressions reach further than random input.
#[test]
fn mutated_expressions_never_panic() {
    let seeds = [
        "state.a[1].b.split('').map(c, c + 'x').join('-').substring(1, 3)",
        "has(state.a) && state.?zzz.y.orValue({'k': [1, 2.5]}).size() > 0 ? 'é' : \"q\\n\"",
        "[[1, 2.5], [state.a, 'x'], 1].flatten().distinct().filter(i, type(i) == 'int').sum() + [1, 2].max()",
        "parse_json(json({'a': [1, -2, 3.5e2]})).a.exists_one(i, i % 2 == 1) || 3 in [1u]",
    ];
    let state = json!({"a": [1, {"b": "héé"}]});
    let mut random = Random(42);
    for _ in 0..10_000 {
        let mut characters: Vec<char> = seeds[random.below(seeds.len())].chars().collect();
        for _ in 0..=random.below(3) {
            let (one, two) = (random.below(characters.len()), random.below(characters.len()));
            match random.below(3) {
                0 => characters.swap(one, two),
                1 => drop(characters.remove(one)),
                _ => characters.insert(one, characters[two]),
            }
        }
        let source: String = characters.into_iter().collect();
        let _outcome = evaluate(&source, &state);
    }
}

/// Sorting finds equal scalars, so that a long list of ids or names is affordable.
#[test]
fn long_lists_of_scalars_are_made_distinct() {
    let names: Vec<String> = (0..4_000).map(|n| format!("name-{}", n % 3_000)).collect();
    let state = json!({"names": names, "numbers": (0..4_000).map(|n| n % 7).collect::<Vec<_>>()});
    assert_eq!(
        evaluate("state.names.distinct().size()", &state),
        Ok(json!(3_000))
    );
    assert_eq!(
        evaluate("state.numbers.distinct()", &state),
        Ok(json!([0, 1, 2, 3, 4, 5, 6]))
    );
    assert_eq!(evaluate("state.numbers.sum()", &state), Ok(json!(11_994)));
}
