//! Text that has to fit: cut and coloured; [`super::screen`] wraps it. Every character here is one
//! column wide, names of Kubernetes objects included.

use anstyle::{AnsiColor, Style};
use muster_text::grouped;

pub use crate::terminal::styled;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WAITS: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const OVER: Style = AnsiColor::Blue.on_default();

pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// Cuts out the middle: the ends of a generated name say more than its middle.
pub fn cut_middle(text: &str, most: usize) -> String {
    let length = width(text);
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

pub fn cut_end(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// An amount of a resource for readers: "5,229.95" for "5229950m", "16,000" for "16000". Amounts
/// below one and amounts with a unit stay as they are: "500m", "16Gi".
pub fn readable(amount: &str) -> String {
    let (digits, thousandths) = match amount.strip_suffix('m') {
        Some(digits) => (digits, true),
        None => (amount, false),
    };
    match digits.parse::<u64>() {
        Ok(whole) if !thousandths => grouped(whole),
        Ok(milli) if milli >= 1000 => {
            let fraction = format!("{:03}", milli % 1000);
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{}{point}{fraction}", grouped(milli / 1000))
        }
        _ => amount.to_owned(),
    }
}

/// The same for tables: from a hundred up only with tenths.
pub fn rounded(amount: &str) -> String {
    match amount.strip_suffix('m').and_then(|digits| digits.parse::<u64>().ok()) {
        Some(milli) if milli >= 100_000 => readable(&format!("{}m", (milli + 50) / 100 * 100)),
        _ => readable(amount),
    }
}

/// A bar of `cells` characters, `part` of `whole` of them full. At least one is full unless `part`
/// is 0.
pub fn bar(part: u64, whole: u64, cells: usize) -> String {
    let full =
        (part.saturating_mul(cells as u64) + whole / 2).checked_div(whole).unwrap_or(0) as usize;
    let full = full.max(usize::from(part > 0)).min(cells);
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

/// `namespace/name` without the namespace where there is only one.
pub struct Names {
    shared: Option<String>,
}

impl Names {
    pub fn new<'k>(keys: impl IntoIterator<Item = &'k str>) -> Names {
        let mut spaces =
            keys.into_iter().filter_map(|key| key.split_once('/')).map(|(space, _)| space);
        let first = spaces.next();
        let shared = first.filter(|first| spaces.all(|space| space == *first));
        Names { shared: shared.map(|space| format!("{space}/")) }
    }

    pub fn short<'k>(&self, key: &'k str) -> &'k str {
        self.shared.as_ref().and_then(|shared| key.strip_prefix(shared.as_str())).unwrap_or(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_middle_and_keep_their_ends() {
        let cut = cut_middle("default/training-large-0042", 15);
        assert_eq!((cut.as_str(), width(&cut)), ("default…ge-0042", 15));
        assert_eq!(cut_middle("short", 15), "short");
    }

    #[test]
    fn amounts_are_readable() {
        let shown = ["5229950m", "500m", "16000", "16Gi", "-1500m", "2000m", "8"].map(readable);
        assert_eq!(shown, ["5,229.95", "500m", "16,000", "16Gi", "-1500m", "2", "8"]);
        assert_eq!(["5229950m", "99999m", "16"].map(rounded), ["5,230", "99.999", "16"]);
    }

    #[test]
    fn a_bar_is_empty_only_for_zero() {
        let shown =
            [(0, 8), (1, 1000), (4, 8), (9, 8), (0, 0)].map(|(part, whole)| bar(part, whole, 4));
        assert_eq!(shown, ["░░░░", "█░░░", "██░░", "████", "░░░░"]);
    }

    #[test]
    fn a_common_namespace_is_left_out() {
        assert_eq!(Names::new(["a/x", "a/y"]).short("a/x"), "x");
        assert_eq!(Names::new(["a/x", "b/y"]).short("a/x"), "a/x");
    }
}
