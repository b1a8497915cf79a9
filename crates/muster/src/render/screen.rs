//! How long lines may be. On a terminal, lines that are too long are wrapped or cut. In a pipe or a
//! file lines may have any length: sentences are wrapped for readers, nothing is cut.

use std::io::IsTerminal;

use terminal_size::terminal_size_of;

use super::text::{cut_end, cut_middle, width};

/// The width if none is known, and of sentences in a pipe.
const COLUMNS: usize = 80;
/// In a narrower terminal lines are too long, since otherwise they would have no content.
const NARROWEST: usize = 60;
/// Wrapped text has at least this many columns, however deep it is indented.
const NARROWEST_TEXT: usize = 24;

#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Screen {
    /// Sentences are wrapped at this column, and pictures end there.
    text: usize,
    /// Tables and names are cut at this column.
    end: usize,
}

impl Screen {
    /// For output that accepts lines of any length.
    pub const PIPE: Screen = Screen { text: COLUMNS, end: usize::MAX };

    /// Standard output. `COLUMNS` overrides the width of the terminal, and applies to a pipe too:
    /// `watch` sets it.
    pub fn of_output() -> Screen {
        let output = std::io::stdout();
        let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let seen = || terminal_size_of(&output).map(|(width, _)| usize::from(width.0));
        match said.filter(|columns| *columns > 0).or_else(seen) {
            Some(columns) => Screen::columns(columns),
            None if output.is_terminal() => Screen::columns(COLUMNS),
            None => Screen::PIPE,
        }
    }

    pub fn columns(columns: usize) -> Screen {
        let columns = columns.max(NARROWEST);
        Screen { text: columns, end: columns }
    }

    /// The screen to the right of this many columns.
    pub fn beside(self, margin: usize) -> Screen {
        Screen {
            text: self.text.saturating_sub(margin).max(NARROWEST_TEXT),
            end: self.end.saturating_sub(margin).max(NARROWEST_TEXT),
        }
    }

    pub fn text(self) -> usize {
        self.text
    }

    pub fn end(self) -> usize {
        self.end
    }

    /// Whether lines may have any length.
    pub fn is_endless(self) -> bool {
        self.end >= usize::MAX / 2
    }

    /// How long a name may be beside other text.
    pub fn name(self) -> usize {
        self.end / 5 * 2
    }

    /// How long the name of a node may be beside its picture.
    pub fn label(self) -> usize {
        self.end / 4
    }

    pub fn cut(self, text: &str) -> String {
        cut_end(text, self.end)
    }

    /// Breaks between words; a word that is longer than a line loses its middle.
    pub fn wrap(self, text: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let word = cut_middle(word, self.end);
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(&word) <= self.text => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        lines
    }

    /// At most this many lines, the last of which is cut if there is more; all of them if lines may
    /// have any length.
    pub fn wrap_within(self, text: &str, height: usize) -> Vec<String> {
        let mut lines = self.wrap(text);
        if !self.is_endless() && lines.len() > height {
            let rest = lines.split_off(height - 1).join(" ");
            lines.push(self.cut(&rest));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wrapped_line_is_too_long_for_a_terminal() {
        let text =
            "only 2 of 4 pods fit; for team-with-a-name-that-is-very-long/pod-0 0/2 nodes fit";
        let screen = Screen::columns(60).beside(30);
        let lines = screen.wrap(text);
        assert!(lines.iter().all(|line| width(line) <= 30), "{lines:?}");
        assert_eq!(lines[1], "team-with-a-nam…ery-long/pod-0");
        assert_eq!(screen.wrap(""), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_cut_in_a_pipe() {
        let word = "w".repeat(200);
        let text = format!("a {word} of {}", "many words ".repeat(40));
        let lines = Screen::PIPE.beside(12).wrap_within(&text, 2);
        assert!(lines.len() > 4 && lines[1] == word, "{lines:?}");
        let rest = lines.iter().filter(|line| **line != word);
        assert!(rest.into_iter().all(|line| width(line) <= 68), "{lines:?}");
        assert!(Screen::PIPE.beside(20).name() > 200 && Screen::PIPE.label() > 200);
    }

    #[test]
    fn the_last_line_is_cut_if_there_is_more() {
        let screen = Screen::columns(60).beside(30);
        let text = "tune consolidate tried 2 scenarios, none fits: 0 filtered, 6 simulated";
        assert_eq!(
            screen.wrap_within(text, 2),
            ["tune consolidate tried 2", "scenarios, none fits: 0 filte…"]
        );
    }
}
