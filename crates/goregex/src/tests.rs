use std::collections::BTreeMap;
use std::fmt::Write;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::*;

/// The ranges of characters that a pattern of one character matches.
fn characters(pattern: &str) -> Vec<(char, char)> {
    match parse::parse(pattern).expect("Go accepts it").into_kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).expect("a character");
            text.chars().map(|c| (c, c)).collect()
        }
        // "No character" is a pattern without bytes.
        HirKind::Class(Class::Bytes(class)) if class.ranges().is_empty() => Vec::new(),
        other => panic!("{pattern} is {other:?}"),
    }
}

fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn classes_have_the_same_characters_as_in_go() {
    let mut differences = String::new();
    for line in include_str!("../tests/go/classes.jsonl").lines() {
        let (pattern, count, hash): (String, usize, String) =
            serde_json::from_str(line).expect("a class");
        let ranges = characters(&pattern);
        let ours: usize = ranges.iter().map(|(first, last)| (*first..=*last).count()).sum();
        let text: String = ranges
            .iter()
            .map(|(first, last)| format!("{:x}-{:x};", *first as u32, *last as u32))
            .collect();
        if format!("{:016x}", fnv_1a(&text)) != hash {
            writeln!(differences, "{pattern}: Go has {count} characters, we have {ours}")
                .expect("a string");
        }
    }
    assert_eq!(differences, "");
}

#[test]
fn characters_differ_in_case_as_in_go() {
    let mut same: BTreeMap<char, Vec<char>> = BTreeMap::new();
    for line in include_str!("../tests/go/folds.jsonl").lines() {
        let fold: Vec<char> = serde_json::from_str(line).expect("characters");
        for c in &fold {
            same.insert(*c, fold.clone());
        }
    }
    for c in '\0'..=char::MAX {
        let class = class::folded(ClassUnicode::new([ClassUnicodeRange::new(c, c)]));
        let ours: Vec<char> = class.iter().flat_map(|range| range.start()..=range.end()).collect();
        let mut go = same.get(&c).cloned().unwrap_or(vec![c]);
        go.sort();
        assert_eq!(ours, go);
    }
}

#[test]
fn the_literal_prefix_is_what_every_match_begins_with() {
    let prefixes = [
        ("^gpu-rack1-node[0-9]+$", "gpu-rack1-node"),
        (r"^rack1-\d", "rack1-"),
        (r"\Arack1", "rack1"),
        ("^(rack1)-", "rack1-"),
        ("^(?:rack1-a|rack1-b)", "rack1-"),
        ("^rack1|^rack2", "rack"),
        ("^abc*", "ab"),
        ("^ab{3}", "abbb"),
        (r"^\Qa.b\E", "a.b"),
        ("^é|^è", ""),
        ("^(?i)a", ""),
        ("^(?i)1", "1"),
        ("^.*a", ""),
        ("^a|b", ""),
        ("(?m)^a", ""),
        ("rack1", ""),
        ("", ""),
    ];
    for (pattern, prefix) in prefixes {
        let regex = GoRegex::new(pattern).expect("Go accepts it");
        assert_eq!(regex.literal_prefix(), prefix, "{pattern}");
    }
}

#[test]
fn a_mistake_says_where_it_is_and_what_to_write() {
    let messages = [
        (
            "a(?=b)",
            "invalid or unsupported Perl syntax \"(?=\" at byte 1; Go's regular expressions have no look-ahead",
        ),
        (
            "é(?<!b)",
            "invalid named capture \"(?<!b)\" at byte 2; Go's regular expressions have no look-behind",
        ),
        (
            r"(a)\1",
            r#"invalid escape sequence "\\1" at byte 3; Go's regular expressions have no back-references"#,
        ),
        (r"a\Z", r#"invalid escape sequence "\\Z" at byte 1; write \z for the end of the text"#),
        ("a)", r"unexpected ) at byte 1; write \) for the character itself"),
        ("a(b(c)", r"missing closing ) at byte 1; write the ), or \( for the character itself"),
        (
            "ab[c",
            r#"missing closing ] "[c" at byte 2; write the ], or \[ for the character itself"#,
        ),
        (
            "a\\",
            r"trailing backslash at end of expression at byte 1; write \\ for the character itself",
        ),
        (
            "[z-a]",
            r#"invalid character class range "z-a" at byte 1; write the smaller character first"#,
        ),
        (
            "a**",
            r#"invalid nested repetition operator "**" at byte 1; write one operator, or a group between two: (?:x*)*"#,
        ),
    ];
    for (pattern, message) in messages {
        assert_eq!(GoRegex::new(pattern).expect_err("Go rejects it").to_string(), message);
    }
}

#[test]
fn patterns_too_large_for_go_are_rejected() {
    let large = ["a{1000}".repeat(4000), "x{1000}|".repeat(4000), r"\pL".repeat(30_000)];
    for pattern in large {
        let error = GoRegex::new(&pattern).expect_err("Go rejects it");
        assert_eq!(error.kind, GoRegexErrorKind::TooLarge);
    }
}

#[test]
fn our_own_limit_allows_realistic_patterns() {
    let error = GoRegex::new(&r"\pL{1000}".repeat(10)).expect_err("it is too large for us");
    assert_eq!(error.kind, GoRegexErrorKind::TooLarge);
    assert!(GoRegex::new(r"\pL{1000}").is_ok());
    let names: Vec<String> = (0..20_000).map(|number| format!("node-{number}")).collect();
    let regex = GoRegex::new(&format!("^(?:{})$", names.join("|"))).expect("Go accepts it");
    assert!(regex.is_match("node-19999"));
    assert!(!regex.is_match("node-20000"));
}
