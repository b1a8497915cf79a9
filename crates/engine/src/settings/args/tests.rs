use muster_yaml::parse;

use super::*;
use crate::base::purpose::Method;

const fn argument(name: &'static str) -> Argument {
    Argument { name, default: "", meaning: "" }
}

const DECLARED: &[Argument] =
    &[argument("load.weight"), argument("load.of.<name>"), argument("load.unused")];
const AT: Place = Place { line: 9, column: 9 };

/// What a reader gets from arguments, and what is wrong with them.
fn with<T>(text: &str, read: impl Fn(&mut Args) -> T) -> (T, Vec<String>) {
    let tree = parse(text).unwrap();
    let mut args = Args::new("f", "load", AT, Some(&tree));
    let value = read(&mut args);
    (value, args.finish(DECLARED).iter().map(Diagnostic::to_string).collect())
}

fn fine<T>(value: T) -> (T, Vec<String>) {
    (value, Vec::new())
}

fn bad<T>(value: T, error: &str) -> (T, Vec<String>) {
    (value, vec![error.to_owned()])
}

#[test]
fn numbers_are_taken_in_every_way_they_are_written() {
    for text in ["n: 10", "n: '10'", "n: 10.0"] {
        assert_eq!(with(text, |args| args.int("n", 1)), fine(10), "{text}");
        assert_eq!(with(text, |args| args.weight("n", 1)), fine(10), "{text}");
        assert_eq!(with(text, |args| args.millionths("n", 1)), fine(10_000_000), "{text}");
    }
    assert_eq!(with("n: 1.2", |args| args.millionths("n", 1)), fine(1_200_000));
    assert_eq!(with("n: -3", |args| args.int("n", 1)), fine(-3));
    assert_eq!(with("b: 'false'", |args| args.bool("b", true)), fine(false));
}

#[test]
fn what_is_absent_has_its_default() {
    assert_eq!(with("{}", |args| args.int("n", 7)), fine(7));
    assert_eq!(with("{}", |args| args.weight("n", 7)), fine(7));
    assert_eq!(with("{}", |args| args.bool("n", true)), fine(true));
    assert_eq!(with("{}", |args| args.millionths("n", 7)), fine(7));
    assert_eq!(with("{}", |args| args.duration_ms("n", None)), fine(None));
    assert_eq!(with("{}", |args| args.duration_ms("n", Some(5))), fine(Some(5)));
    assert_eq!(with("{}", |args| args.words("n")), fine(vec![]));
    assert_eq!(with("{}", |args| args.prefixed("n.")), fine(vec![]));
    assert_eq!(Args::none().int("n", 7), 7);
}

#[test]
fn a_wrong_value_is_reported_and_the_default_stands_in() {
    assert_eq!(
        with("a: 1\nn: ten", |args| (args.int("a", 0), args.int("n", 7))),
        bad((1, 7), "f:2:1: n: expected a whole number, found the string \"ten\"")
    );
    assert_eq!(
        with("n: 10001", |args| args.weight("n", 7)),
        bad(7, "f:1:1: n: expected a whole number from 0 to 10000, found the number 10001")
    );
    assert_eq!(
        with("n: -1", |args| args.weight("n", 7)),
        bad(7, "f:1:1: n: expected a whole number from 0 to 10000, found the number -1")
    );
    assert_eq!(
        with("n: 1.23456789", |args| args.millionths("n", 7)),
        bad(
            7,
            "f:1:1: n: expected a number with at most 6 digits after the point, found the number 1.23456789"
        )
    );
    assert_eq!(
        with("n: maybe", |args| args.bool("n", true)),
        bad(true, "f:1:1: n: expected true or false, found the string \"maybe\"")
    );
    assert_eq!(
        with("n:", |args| args.bool("n", true)),
        bad(true, "f:1:1: n: expected true or false, found nothing")
    );
    assert_eq!(
        with("n: {a: b}", |args| args.words("n")),
        bad(vec![], "f:1:1: n: expected a list of names like \"a, b\", found a mapping")
    );
}

#[test]
fn durations_are_spans_or_seconds_and_negative_only_where_that_means_something() {
    assert_eq!(with("n: 1h30m", |args| args.duration_ms("n", None)), fine(Some(5_400_000)));
    assert_eq!(with("n: 90", |args| args.duration_ms("n", None)), fine(Some(90_000)));
    assert_eq!(with("n: 0", |args| args.duration_ms("n", Some(1))), fine(Some(0)));
    for (text, found) in
        [("soon", "string \"soon\""), ("-5s", "string \"-5s\""), ("1.5", "number 1.5")]
    {
        let error =
            format!("f:1:1: n: expected a duration like 90s, 30m or 1h30m, found the {found}");
        assert_eq!(
            with(&format!("n: {text}"), |args| args.duration_ms("n", None)),
            bad(None, &error)
        );
    }
    assert_eq!(with("n: -5s", |args| args.signed_duration_ms("n")), fine(Some(-5000)));
    assert_eq!(with("n: -1", |args| args.signed_duration_ms("n")), fine(Some(-1000)));
    assert_eq!(with("{}", |args| args.signed_duration_ms("n")), fine(None));
}

#[test]
fn limits_that_mean_nothing_are_errors() {
    for (text, error) in [
        ("maxSteps: -5", "maxSteps: expected a whole number of 1 or more, found the number -5"),
        (
            "maxStepsPerGang: 0",
            "maxStepsPerGang: expected a whole number of 1 or more, found the number 0",
        ),
        ("maxDomains: 0", "maxDomains: expected a whole number of 1 or more, found the number 0"),
        ("maxMoves: -1", "maxMoves: expected a whole number of 0 or more, found the number -1"),
    ] {
        let standard = Args::none().eviction_settings_by_moves();
        assert_eq!(
            with(text, |args| args.eviction_settings_by_moves()),
            bad(standard, &format!("f:1:1: {error}"))
        );
    }
    for text in ["0s", "-1h"] {
        let error = "f:1:1: n: expected a duration above zero, like 30m or 24h, found the string";
        let error = format!("{error} \"{text}\"");
        assert_eq!(with(&format!("n: {text}"), |args| args.span_ms("n")), bad(None, &error));
    }
}

#[test]
fn pods_are_evicted_or_deleted() {
    assert_eq!(with("{}", |args| args.eviction_method()), fine(Method::Evict));
    assert_eq!(
        with("evictionMethod: eviction", |args| args.eviction_method()),
        fine(Method::Evict)
    );
    assert_eq!(with("evictionMethod: delete", |args| args.eviction_method()), fine(Method::Delete));
    assert_eq!(
        with("evictionMethod: kill", |args| args.eviction_method()),
        bad(
            Method::Evict,
            "f:1:1: evictionMethod: expected eviction or delete, found the string \"kill\""
        )
    );
}

#[test]
fn prefixed_keys_are_all_taken_and_sorted() {
    let text = "load.of.b: 2\nload.of.a: '1'\nload.of: x\nload.weight: 3";
    let read = |args: &mut Args| (args.words("load.of"), args.prefixed("load.of."));
    let weights = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
    assert_eq!(with(text, read), fine((vec!["x".to_owned()], weights)));
    assert_eq!(
        with("load.of.a: x", |args| args.prefixed("load.of.")),
        bad(
            vec![],
            "f:1:1: load.of.a: expected a whole number from 0 to 10000, found the string \"x\""
        )
    );
}

#[test]
fn what_is_left_over_was_misspelt_unless_it_is_declared() {
    assert_eq!(with("load.unused: 1\nload.of.x: 1", |_| ()), fine(()));
    assert_eq!(
        with("load.wieght: 1", |args| args.weight("load.weight", 7)),
        bad(7, "f:1:1: load.wieght: load has no such argument\n  help: did you mean load.weight?")
    );
}

#[test]
fn a_plugins_own_complaint_stands_at_its_key() {
    let complain = |key: &'static str| {
        move |args: &mut Args| args.problem(key, "too small".to_owned(), "write 1".to_owned())
    };
    assert_eq!(
        with("load.unused: 0\nload.weight: 0", complain("load.weight")),
        bad((), "f:2:1: load.weight: too small\n  help: write 1")
    );
    assert_eq!(
        with("{}", complain("load.weight")),
        bad((), "f:9:9: load.weight: too small\n  help: write 1")
    );
}

#[test]
fn limits_and_fractions_have_a_range() {
    for text in ["0", "-1", "x", "1.5", ".nan", "~"] {
        let (value, errors) = with(&format!("n: {text}"), |args| args.at_least(1, "n", 7));
        assert_eq!((value, errors.len()), (7, 1), "{text}");
        assert!(errors[0].starts_with("f:1:1: n: expected a whole number of 1 or more, found"));
    }
    for (text, millionths) in [("0", 0), ("1", 1_000_000), ("0.05", 50_000), ("'0.5'", 500_000)] {
        assert_eq!(with(&format!("n: {text}"), |args| args.fraction("n", 7)), fine(millionths));
    }
    for text in ["-0.01", "1.000001", ".nan", "NaN", ".inf", "x", "0.00000001"] {
        let (value, errors) = with(&format!("n: {text}"), |args| args.fraction("n", 7));
        assert_eq!((value, errors.len()), (7, 1), "{text}");
        assert!(errors[0].contains("expected a number from 0 to 1 with at most 6 digits"));
    }
    assert_eq!(with("n: 100", |args| args.accept("n", 0..=100)), fine(()));
    assert_eq!(with("{}", |args| args.accept("n", 0..=100)), fine(()));
    let error = "f:1:1: n: expected a whole number from 0 to 100, found the number 101";
    assert_eq!(with("n: 101", |args| args.accept("n", 0..=100)), bad((), error));
    let error = "f:1:1: n: expected a whole number of 1 or more, found the number 0";
    assert_eq!(with("n: 0", |args| args.accept("n", 1..=i64::MAX)), bad((), error));
}
