//! Names of HyperNodes, made only from the identity of the HyperNode, so that no other one can
//! change them; and the order and shortening of names for readers.

use std::cmp::Ordering;

use muster_api::is_dns_subdomain;
use muster_text::grouped;

/// The longest value of a label, so that a name can be one.
const LENGTH: usize = 63;

/// This many names show which ones are meant; more would only fill the screen.
const FEW: usize = 5;

/// A level of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The name that people use: a label, or the head of a column. It becomes the name of the tier.
    pub name: String,
    /// The prefix of names of this level.
    word: String,
    /// Another level has the same prefix, or one that continues this one: prefixes alone don't
    /// distinguish them.
    ambiguous: bool,
}

/// The levels with these names, in the same order.
pub fn levels(names: &[String]) -> Vec<Level> {
    let words: Vec<String> =
        names.iter().map(|name| slug(name.rsplit('/').next().unwrap_or_default())).collect();
    let goes_on = |long: &str, short: &str| long == short || long.starts_with(&format!("{short}-"));
    let level = |(index, name): (usize, &String)| {
        let word = words[index].clone();
        let mut others = words.iter().enumerate().filter(|(other, _)| *other != index);
        let ambiguous = others.any(|(_, other)| goes_on(other, &word) || goes_on(&word, other));
        Level { name: name.clone(), word, ambiguous }
    };
    names.iter().enumerate().map(level).collect()
}

impl Level {
    /// The name of the domain with this value on this level: "rack-r07".
    pub fn object(&self, value: &str) -> String {
        let readable = format!("{}-{value}", self.word);
        named(&readable, !self.ambiguous, &[&self.name, value])
    }

    /// The name of the domain with these values, from this level up to the top:
    /// "rack-zone1.spine2.r07".
    pub fn object_on_path(&self, path: &[&str]) -> String {
        let down: Vec<&str> = path.iter().rev().copied().collect();
        let readable = format!("{}-{}", self.word, down.join("."));
        let exact = !self.ambiguous && path.iter().all(|value| !value.contains('.'));
        let original: Vec<&str> = std::iter::once(self.name.as_str()).chain(down).collect();
        named(&readable, exact, &original)
    }
}

/// The readable name unchanged, if it is valid and no other domain could have the same; else as
/// much of it as is valid, and a hash of what it was made from.
pub fn named(readable: &str, exact: bool, original: &[&str]) -> String {
    if exact && readable.len() <= LENGTH && is_dns_subdomain(readable) {
        return readable.to_owned();
    }
    let hash = format!("{:06x}", hash(original) & 0xff_ffff);
    let mut kept = slug(readable);
    kept.truncate(LENGTH - 1 - hash.len());
    match kept.trim_end_matches('-') {
        "" => format!("x-{hash}"),
        kept => format!("{kept}-{hash}"),
    }
}

/// Lower case letters and digits, with a single dash for everything between them.
fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// FNV-1a, which is the same on every machine and in every version. A zero byte ends each part.
fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// node2 comes before node10.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let ((one, left_rest), (other, right_rest)) = (chunk(left), chunk(right));
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => one.len().cmp(&other.len()).then(one.cmp(other)),
            _ => one.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.len().cmp(&right.len()).then(a.cmp(b))
}

/// The digits, or the characters that are not digits, with which the text begins, and the rest.
fn chunk(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    text.split_at(text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len()))
}

/// The digits without leading zeros, if it is a number.
fn number(chunk: &str) -> Option<&str> {
    chunk.starts_with(|c: char| c.is_ascii_digit()).then(|| chunk.trim_start_matches('0'))
}

/// The first few names in their natural order, and how many more there are.
pub fn few<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by(|a, b| natural(a, b));
    names.dedup();
    let more = names.len().saturating_sub(FEW);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {} more", grouped(more as u64)) }
}

/// The first few of owned names, as [`few`] does it.
pub fn few_of(names: &[String]) -> String {
    few(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str) -> Level {
        levels(&[name.to_owned()]).remove(0)
    }

    #[test]
    fn a_name_is_the_level_and_the_value() {
        assert_eq!(level("rack").object("r07"), "rack-r07");
        assert_eq!(level("topology.kubernetes.io/zone").object("eu-1.a"), "zone-eu-1.a");
        assert_eq!(level("rack").object_on_path(&["r07", "s1", "a"]), "rack-a.s1.r07");
    }

    #[test]
    fn names_that_would_collide_get_a_hash() {
        let rack = level("rack");
        let names: Vec<String> =
            ["R07", "r 07", "r_07", "-r07", "日本", ""].map(|value| rack.object(value)).into();
        assert!(names.iter().all(|name| is_dns_subdomain(name)), "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("rack-")), "{names:?}");
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert_eq!(names[0], "rack-r07-c690fb", "a name that changes is another HyperNode");
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_its_own_hash() {
        let names = ["1", "2"].map(|end| level("rack").object(&("x".repeat(300) + end)));
        assert!(names.iter().all(|name| name.len() == LENGTH), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    /// rack + a-b and rack-a + b would be the same words.
    #[test]
    fn levels_with_ambiguous_prefixes_get_a_hash() {
        let levels = levels(&["rack".to_owned(), "rack-a".to_owned(), "pod".to_owned()]);
        assert_ne!(levels[0].object("a-b"), levels[1].object("b"));
        assert_eq!(levels[2].object("b"), "pod-b");
        let same = self::levels(&["a.com/rack".to_owned(), "b.com/rack".to_owned()]);
        assert_ne!(same[0].object("1"), same[1].object("1"));
    }

    #[test]
    fn values_with_dots_do_not_look_like_a_path() {
        let rack = level("rack");
        assert_ne!(rack.object_on_path(&["r1", "a"]), rack.object_on_path(&["a.r1"]));
        assert_ne!(rack.object_on_path(&["c", "a.b"]), rack.object_on_path(&["b.c", "a"]));
    }

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["n10", "n2", "n02", "n", "n2a", "m11", "10", "9"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["9", "10", "m11", "n", "n02", "n2", "n2a", "n10"]);
        assert_eq!(few(names), "9, 10, m11, n, n02 and 3 more");
    }
}
