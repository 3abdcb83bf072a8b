//! Tests of operators, macros, functions and error messages.

use serde_json::{Value, json};

use super::*;

fn state() -> Value {
    json!({
        "n": 3, "d": 2.5, "s": "héllo", "t": true, "none": null,
        "list": [1, 2, 3, 4], "map": {"b": 2, "a": 1}, "big": u64::MAX,
        "people": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 20}, {"name": "Cy"}],
    })
}

fn run(source: &str, state: &Value) -> Result<Value, Error> {
    let expression = Expression::new(source);
    let mut scope = Scope::new();
    scope.bind("state", state).bind_owned("x", json!(7));
    let result = expression.evaluate(&scope);
    if result.is_ok() {
        // An expression that evaluates must also pass the check.
        assert!(expression.check().is_ok(), "{source}");
    }
    result
}

#[track_caller]
fn check(source: &str, expected: Value) {
    match run(source, &state()) {
        // Compared as text: 1 and 1.0 are different results.
        Ok(found) => assert_eq!(found.to_string(), expected.to_string(), "{source}"),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn fails(source: &str, expected: &str) {
    match run(source, &state()) {
        Ok(found) => panic!("{source} gave {found}"),
        Err(error) => assert!(error.message.contains(expected), "{error}"),
    }
}

#[test]
fn literals_and_selection() {
    for (source, expected) in [
        ("null", json!(null)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("12u + 0x10", json!(28)),
        ("1.5e3", json!(1500.0)),
        (r#""a\n" + 'b' + r'\d' + '''c'd'''"#, json!("a\nb\\dc'd")),
        ("[1, 'a', [true,],]", json!([1, "a", [true]])),
        (
            "{'b': 1, 2: 'two', true: null}",
            json!({"b": 1, "2": "two", "true": null}),
        ),
        ("state.list[0] + state['n']", json!(4)),
        ("state.map[\"b\"]", json!(2)),
        ("{1: 'one'}[1]", json!("one")),
        ("state.list[1.0]", json!(2)),
        ("state.big", json!(u64::MAX)),
        ("state.big > 1 && state.big != 18446744073709551614u", json!(true)),
        ("[{'a': [5]}][0].a[0]", json!(5)),
        ("has(state.n) && !has(state.zzz)", json!(true)),
        ("has(state.zzz.y.z) || has(state.none.y)", json!(false)),
        ("has(state.people[9].name)", json!(false)),
        ("state.?zzz.orValue('d')", json!("d")),
        ("state.?n.orValue('d')", json!(3)),
        ("state.?zzz.y[3].orValue(0)", json!(0)),
        ("state.list[?9].orValue(-1)", json!(-1)),
        ("state.list[?0].hasValue()", json!(true)),
        ("state.?none.hasValue()", json!(true)),
        ("// note\n 1 + // more\n 2", json!(3)),
    ] {
        check(source, expected);
    }
}

#[test]
fn operators() {
    for (source, expected) in [
        ("7 / 2", json!(3)),
        ("-7 / 2", json!(-3)),
        ("-7 % 3", json!(-1)),
        ("7.0 / 2", json!(3.5)),
        ("5.5 % 2", json!(1.5)),
        ("1 + 0.5", json!(1.5)),
        ("2 * 3 - 4", json!(2)),
        ("-x + 1", json!(-6)),
        ("-(1.5)", json!(-1.5)),
        ("[1] + [2, 3]", json!([1, 2, 3])),
        ("1 == 1.0 && [1] == [1.0] && {'a': 1} == {'a': 1.0}", json!(true)),
        ("9007199254740993 == 9007199254740992.0", json!(false)),
        ("1 == '1' || null == false || [1] == [1, 2]", json!(false)),
        ("state.map == {'a': 1, 'b': 2}", json!(true)),
        ("state.map != {'a': 1, 'c': 2}", json!(true)),
        ("1 < 1.5 && 2.5 >= 2 && -1 > -1.5 && 3 <= 3", json!(true)),
        (
            "1 < 1e300 && -1 > -1e300 && 'a' < 'b' && false < true",
            json!(true),
        ),
        (
            "2 in [1, 2.0] && 'a' in state.map && !(9 in state.list)",
            json!(true),
        ),
        ("!state.t ? 1 : x > 5 ? 2 : 3", json!(2)),
        ("false && state.zzz", json!(false)),
        ("state.zzz && false", json!(false)),
        ("state.zzz || true", json!(true)),
        ("1 / 0 > 1 || true && !false", json!(true)),
        ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", json!(true)),
        ("((((x)))) + ((1) + (2))", json!(10)),
    ] {
        check(source, expected);
    }
}

#[test]
fn comprehensions() {
    for (source, expected) in [
        ("state.list.map(i, i * 2)", json!([2, 4, 6, 8])),
        ("state.list.map(i, i > 2, i * 2)", json!([6, 8])),
        ("state.list.filter(i, i % 2 == 0)", json!([2, 4])),
        (
            "state.list.all(i, i > 0) && !state.list.all(i, i > 1)",
            json!(true),
        ),
        ("state.list.exists(i, i == 3)", json!(true)),
        ("state.list.exists_one(i, i > 3)", json!(true)),
        ("state.list.exists_one(i, i > 2)", json!(false)),
        ("[].all(i, i) && ![].exists(i, i)", json!(true)),
        ("state.map.map(k, k + string(state.map[k]))", json!(["a1", "b2"])),
        ("{'z': 1, 'y': 2}.filter(k, true)", json!(["y", "z"])),
        (
            "state.people.filter(p, has(p.age) && p.age > 25).map(p, p.name)",
            json!(["Ann"]),
        ),
        ("state.people.filter(p, has(p.age))[0].name", json!("Ann")),
        (
            "[1, 2].map(i, [10, 20].map(j, i + j))",
            json!([[11, 21], [12, 22]]),
        ),
        ("[1].map(x, [x + 1].map(x, x))[0][0] + x", json!(9)),
        // A decisive element overrides a failing one.
        ("state.people.exists(p, p.age == 20)", json!(true)),
        ("state.people.all(p, p.age < 25)", json!(false)),
        (
            "[[1].map(i, i / 0)].size() == 9 || [7].exists(i, i == x)",
            json!(true),
        ),
    ] {
        check(source, expected);
    }
    fails("state.people.all(p, p.age > 10)", "no such key: age");
    fails("state.n.map(i, i)", "cannot iterate over int");
    fails("state.list.filter(i, i)", "filter needs a bool, found int");
}

#[test]
fn functions_return_their_documented_results() {
    for (source, expected) in [
        (
            "size(state.s) + 'ab'.size() + size(state.list) + state.map.size()",
            json!(13),
        ),
        ("state.s.contains('llo') && !state.s.contains('z')", json!(true)),
        ("state.s.startsWith('hé') && state.s.endsWith('lo')", json!(true)),
        ("[int('42'), int(2.9), int(-2.9), int(7)]", json!([42, 2, -2, 7])),
        ("[double('1.5'), double(2), double(0.5)]", json!([1.5, 2.0, 0.5])),
        (
            "[string(1), string(1.5), string('a'), string(null), string([1,'a'])]",
            json!(["1", "1.5", "a", "null", "[1,\"a\"]"]),
        ),
        (
            "[bool('true'), bool('false'), bool(true)]",
            json!([true, false, true]),
        ),
        (
            "[1, 1.5, 's', true, [1], {}, null].map(v, type(v))",
            json!(["int", "double", "string", "bool", "list", "map", "null_type"]),
        ),
        ("'AbÉ'.lowerAscii() + 'abé'.upperAscii()", json!("abÉABé")),
        ("'  a b\\n'.trim()", json!("a b")),
        ("'a,b,,c'.split(',')", json!(["a", "b", "", "c"])),
        ("'a,b,c'.split(',', 2)", json!(["a", "b,c"])),
        (
            "'hé'.split('') + ''.split('') + 'a'.split(',', 0)",
            json!(["h", "é"]),
        ),
        ("''.split(',')", json!([""])),
        (
            "['a', 'b'].join('-') + ['c', 'd'].join() + [].join('x')",
            json!("a-bcd"),
        ),
        (
            "'aXbX'.replace('X', '--') + 'aa'.replace('a', 'b', 1)",
            json!("a--b--ba"),
        ),
        (
            "state.s.substring(1) + state.s.substring(0, 2) + 'a'.substring(1)",
            json!("éllohé"),
        ),
        ("('x' + state.s).trim().substring(1, 3)", json!("hé")),
        (
            "[state.s.indexOf('l'), state.s.indexOf('l', 3), state.s.indexOf('z')]",
            json!([2, 3, -1]),
        ),
        (
            "[min(state.list), max(state.list), min(3, 1.5), max('a', 'b')]",
            json!([1, 4, 1.5, "b"]),
        ),
        ("[state.list.max(), max(5)]", json!([4, 5])),
        (
            "[[3, 1.5, 2].min(), ['b', 'a'].min(), [true, false].max()]",
            json!([1.5, "a", true]),
        ),
        (
            "[[1, 2, 3].sum(), [1, 0.5].sum(), [].sum(), [-2.5].sum()]",
            json!([6, 1.5, 0, -2.5]),
        ),
        ("state.list.map(i, i * 2).sum()", json!(20)),
        (
            "[[1, [2]], 3, [], [[4]], 'a'].flatten()",
            json!([1, [2], 3, [4], "a"]),
        ),
        ("[[1, [2, [3]]]].flatten().flatten()", json!([1, 2, [3]])),
        ("[].flatten() + [].distinct()", json!([])),
        (
            "['b', 'a', 'b', 1, 1.0, 2, '1', null, true, null, true, false].distinct()",
            json!(["b", "a", 1, 2, "1", null, true, false]),
        ),
        (
            "[{'a': 1}, [1], {'a': 1.0}, [1, 2], [1], {'a': 2}, 1, [1.0]].distinct()",
            json!([{"a": 1}, [1], [1, 2], {"a": 2}, 1]),
        ),
        (
            "[9007199254740993, 9007199254740992.0, 9007199254740992].distinct()",
            json!([9007199254740993_i64, 9007199254740992.0]),
        ),
        ("[0.0, -0.0, 0].distinct().size()", json!(1)),
        ("[abs(-3), abs(-1.5)]", json!([3, 1.5])),
        (
            "[ceil(1.2), floor(-1.2), round(2.5), round(-2.5), round(7)]",
            json!([2, -2, 3, -3, 7]),
        ),
        ("keys(state.map) + {'q': 1}.keys()", json!(["a", "b", "q"])),
        (
            "json({'b': [1, 2.0, null], 'a': 'q\"'})",
            json!(r#"{"a":"q\"","b":[1,2.0,null]}"#),
        ),
        ("parse_json('{\"a\": [1, {\"b\": 2.5}]}').a[1].b", json!(2.5)),
        ("parse_json(json(state)) == state", json!(true)),
        ("dyn(1) + 1", json!(2)),
    ] {
        check(source, expected);
    }
}

#[test]
fn errors_name_the_cause() {
    for (source, expected) in [
        ("nothing", "unknown name: nothing (known: state, x)"),
        ("state.zzz", "no such key: zzz"),
        ("state['zzz']", "no such key: zzz"),
        ("state.list[4]", "index 4 is out of range for a list of size 4"),
        ("state.list[-1]", "index -1 is out of range for a list of size 4"),
        ("state.list['a']", "cannot index list with string"),
        ("state.n.x", "cannot select .x from int"),
        ("state.none.x", "cannot select .x from null_type"),
        ("state.n[0]", "cannot index int"),
        ("{[]: 1}", "map key must be a string, found list"),
        ("{'a': 1, 'a': 2}", "duplicate key: a"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775807 - 2", "integer overflow"),
        ("state.big * 2", "integer overflow"),
        ("-(-9223372036854775807 - 1)", "integer overflow"),
        ("(-9223372036854775807 - 1) / -1", "integer overflow"),
        ("abs(-9223372036854775807 - 1)", "integer overflow"),
        ("int(1e300)", "integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.0 / 0", "division by zero"),
        ("1e308 * 10", "result is not a finite number"),
        ("double('nan')", "result is not a finite number"),
        (
            "'a' + 1",
            "cannot apply + to string and int, convert with string(value)",
        ),
        ("[] - 1", "cannot apply - to list and int"),
        ("1 < 'a'", "cannot compare int with string"),
        ("'a' in 'abc'", "for strings use text.contains(part)"),
        ("!1", "! needs a bool, found int"),
        ("1 && true", "&& needs a bool, found int"),
        ("1 ? 2 : 3", "?: needs a bool, found int"),
        ("-'a'", "cannot negate string"),
        ("size(1)", "size expects a string, list or map, found int"),
        ("int('q')", "int cannot read \"q\""),
        ("int(true)", "int expects a number, found bool"),
        ("double('q')", "double cannot read \"q\""),
        ("bool('yes')", "bool expects"),
        ("[1].join(',')", "join expects a string, found int"),
        (
            "'a'.substring(2)",
            "substring position 2 is out of range for a string of size 1",
        ),
        ("'abc'.substring(2, 1)", "substring ends before it starts"),
        ("max([])", "max of an empty list"),
        ("[].min()", "min of an empty list"),
        ("[1, 'a'].max()", "cannot compare string with int"),
        ("[1, 'a'].sum()", "sum expects a list of numbers, found string"),
        ("[null].sum()", "sum expects a list of numbers, found null_type"),
        ("'12'.sum()", "sum expects a list, found string"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("[state.big, 1].sum()", "integer overflow"),
        ("[1e308, 1e308].sum()", "result is not a finite number"),
        ("state.map.flatten()", "flatten expects a list, found map"),
        ("state.n.distinct()", "distinct expects a list, found int"),
        ("min([null])", "cannot compare null_type with null_type"),
        ("keys([])", "keys expects a map, found list"),
        ("parse_json('{')", "parse_json: EOF"),
        ("parse_json('[' + 'x')", "parse_json: expected value"),
    ] {
        fails(source, expected);
    }
    let error = run("state.zzz", &state()).unwrap_err();
    assert_eq!(error.to_string(), "expression `state.zzz`: no such key: zzz");
    let long = format!("state.zzz{}", " ".repeat(500));
    let error = run(&long, &state()).unwrap_err();
    assert_eq!(error.expression.chars().count(), 201);
    let not_bool = Expression::new("1").evaluate_bool(&Scope::new()).unwrap_err();
    assert_eq!(not_bool.message, "result must be a bool, found int");
    assert_eq!(Expression::new("1 == 1.0").evaluate_bool(&Scope::new()), Ok(true));
}
