//! Slurm's short form for many names: `node[0-15,20],login1` and `rack[1-2]n[01-16]`.

use thiserror::Error;

/// More names than any cluster has nodes, so that a typing error can't fill the memory.
const NAMES: usize = 100_000;

/// The mistakes in such a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostListError {
    #[error("{text:?} has a [ inside of [ ]; write for example node[0-3,7]")]
    Nested { text: String },
    #[error("{text:?} has a ] without a [; write for example node[0-3,7]")]
    NotOpened { text: String },
    #[error("{text:?} has a [ without a ]; write for example node[0-3,7]")]
    NotClosed { text: String },
    #[error("{text:?} has an empty name; write names with one comma between them")]
    EmptyName { text: String },
    #[error("{text:?} expands to more than {NAMES} names; write fewer")]
    TooMany { text: String },
    #[error("{item:?}: {problem}")]
    Range { item: String, problem: RangeError },
}

/// The mistakes between brackets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RangeError {
    #[error("{text:?} is no number; write numbers and ranges in the brackets, like 0-3,7")]
    NotANumber { text: String },
    #[error("the range {first}-{last} goes down; write {last}-{first}")]
    Down { first: String, last: String },
    #[error("{range:?} expands to more than {NAMES} names; write fewer")]
    TooMany { range: String },
}

/// All names that the text expands to, in its order.
pub fn expand(text: &str) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    for item in items(text)? {
        names.extend(item_names(item)?);
        if names.len() > NAMES {
            return Err(HostListError::TooMany { text: text.to_owned() });
        }
    }
    Ok(names)
}

/// The parts between commas outside of brackets.
fn items(text: &str) -> Result<Vec<&str>, HostListError> {
    let own = || text.to_owned();
    let (mut items, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match (c, inside) {
            ('[', false) | (']', true) => inside = !inside,
            ('[', true) => return Err(HostListError::Nested { text: own() }),
            (']', false) => return Err(HostListError::NotOpened { text: own() }),
            (',', false) => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    match (inside, items.contains(&"")) {
        (true, _) => Err(HostListError::NotClosed { text: own() }),
        (_, true) => Err(HostListError::EmptyName { text: own() }),
        _ => Ok(items),
    }
}

/// The names of one part: each bracket multiplies them.
fn item_names(item: &str) -> Result<Vec<String>, HostListError> {
    let mut names = vec![String::new()];
    let mut rest = item;
    while let Some((literal, (ranges, after))) =
        rest.split_once('[').and_then(|(literal, more)| Some((literal, more.split_once(']')?)))
    {
        let numbers = numbers(ranges)
            .map_err(|problem| HostListError::Range { item: item.to_owned(), problem })?;
        if names.len().saturating_mul(numbers.len()) > NAMES {
            return Err(HostListError::TooMany { text: item.to_owned() });
        }
        let each =
            |name: String| numbers.iter().map(move |number| format!("{name}{literal}{number}"));
        names = names.into_iter().flat_map(each).collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// The numbers of "0-15,20", each padded to the width of the start of its range.
fn numbers(ranges: &str) -> Result<Vec<String>, RangeError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(RangeError::Down { first: first.to_owned(), last: last.to_owned() });
        }
        if to - from > NAMES as u64 {
            return Err(RangeError::TooMany { range: range.to_owned() });
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Ok(numbers)
}

fn number(text: &str) -> Result<u64, RangeError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| RangeError::NotANumber { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_expand_to_many_names() {
        let names = |text| expand(text).expect(text).join(" ");
        assert_eq!(names("tux"), "tux");
        assert_eq!(names("n[0-2,7],login1"), "n0 n1 n2 n7 login1");
        assert_eq!(names("n[08-11]"), "n08 n09 n10 n11");
        assert_eq!(names("n[8-11]-ib"), "n8-ib n9-ib n10-ib n11-ib");
        assert_eq!(names("r[1-2]n[01-02]"), "r1n01 r1n02 r2n01 r2n02");
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, hint) in [
            ("n[0-3", "[ without a ]"),
            ("n0-3]", "] without a ["),
            ("n[[0]]", "inside of [ ]"),
            ("n[3-0]", "write 0-3"),
            ("n[a-b]", "\"a\" is no number"),
            ("n[]", "is no number"),
            ("n[1-2-3]", "\"2-3\" is no number"),
            ("a,,b", "empty name"),
            ("", "empty name"),
            ("n[0-99999999]", "more than 100000"),
            ("n[0-999][0-999]", "more than 100000"),
            ("n[0-18446744073709551615]", "more than 100000"),
        ] {
            let problem = expand(text).expect_err(text).to_string();
            assert!(problem.contains(hint), "{text}: {problem}");
        }
    }
}
