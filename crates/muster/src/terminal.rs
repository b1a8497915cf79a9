//! The one way to the terminal. Names, annotations and messages come from outside, and a control
//! character in them could change colours, the title or earlier output: here all of them become
//! visible. Our own styles survive because they are marked.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::LazyLock;

use anstream::AutoStream;
use anstyle::Style;

/// Marks the escape characters of our own styles. It is drawn at random at every start, so that no
/// file can contain it. U+FDD0 is not a character: Unicode reserves it for internal use.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().hash_one("mark")));

/// The text in a style that [`Output`] lets through.
pub fn styled(style: Style, text: impl Display) -> String {
    let (begin, end) = (style.render().to_string(), style.render_reset().to_string());
    format!("{}{text}{}", begin.replace('\x1b', &MARK), end.replace('\x1b', &MARK))
}

/// The text with our own styles as escape sequences, and control characters from outside as
/// `\u{1b}`.
fn visible(text: &str) -> String {
    let mut parts = text.split(MARK.as_str());
    let mut shown = escaped(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        shown.push('\x1b');
        shown.push_str(&escaped(part));
    }
    shown
}

/// Replaces control characters other than tabs and ends of lines, and characters that reverse the
/// direction of the text, by `\u{1b}`.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminals) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match acts_on_terminals(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

fn acts_on_terminals(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    let reverses = matches!(c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_control || reverses || c == '\u{fdd0}'
}

/// Standard output or standard error. Styles are left out where it is not a terminal.
pub struct Output<S: anstream::stream::RawStream>(AutoStream<S>);

pub fn stdout() -> Output<io::Stdout> {
    Output(anstream::stdout())
}

impl<S: anstream::stream::RawStream + anstream::stream::AsLockedWrite> Output<S> {
    /// What `write!` and `writeln!` call.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.0.write_all(visible(&text.to_string()).as_bytes())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints a text of one or more lines.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()
}

/// Writes to standard error what is not part of the output. If standard error is closed, nothing is
/// lost.
pub fn say(text: impl Display) {
    let _ = writeln!(Output(anstream::stderr()), "{text}");
}

/// A note: nothing needs to be done.
pub fn note(text: impl Display) {
    say(format_args!("note: {text}"));
}

/// A warning: it works, but something has no effect or should be written differently.
pub fn warn(text: impl Display) {
    say(format_args!("warning: {text}"));
}

pub fn error(text: impl Display) {
    say(format_args!("error: {text}"));
}

/// Prints a value as JSON: on several lines for people, on one for programs.
pub fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = json();
    if io::stdout().is_terminal() {
        serde_json::to_writer_pretty(&mut out, value)?;
    } else {
        serde_json::to_writer(&mut out, value)?;
    }
    writeln!(out)?;
    out.flush()
}

/// Standard output for JSON.
pub fn json() -> impl Write {
    AsciiControls(BufWriter::new(io::stdout().lock()))
}

/// Writes JSON. The writer of JSON only escapes the control characters of ASCII, and this escapes
/// the others, which can only occur in strings. JSON arrives in pieces that begin and end between
/// characters.
struct AsciiControls<W>(W);

impl<W: Write> Write for AsciiControls<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(acts_on_terminals) => {
                let escaped = |c: char| match acts_on_terminals(c) {
                    true => format!("\\u{:04x}", u32::from(c)),
                    false => c.to_string(),
                };
                let text: String = text.chars().map(escaped).collect();
                self.0.write_all(text.as_bytes())?;
            }
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The text as it looks without a terminal.
#[cfg(test)]
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(&visible(text)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_from_outside_are_visible_and_our_styles_are_styles() {
        let style = Style::new().bold();
        let name = "a\x1b[31mred\x1b]0;x\x07\u{9b}1m\u{202e}\r\u{7f}b";
        let escaped = "a\\u{1b}[31mred\\u{1b}]0;x\\u{7}\\u{9b}1m\\u{202e}\\u{d}\\u{7f}b";
        assert_eq!(visible(name), escaped);
        assert_eq!(visible(&styled(style, name)), format!("\x1b[1m{escaped}\x1b[0m"));
        assert_eq!(visible("é\tü\n→ …"), "é\tü\n→ …");
    }

    #[test]
    fn text_cannot_imitate_our_styles() {
        let pretended = "\u{fdd0}0123456789abcdef[31m";
        assert_eq!(visible(pretended), "\\u{fdd0}0123456789abcdef[31m");
    }

    #[test]
    fn json_escapes_every_control_character_and_is_read_back() {
        let name = "a\x1b[31m\u{9b}1m\u{202e}\u{7f}é";
        let mut json = Vec::new();
        serde_json::to_writer(AsciiControls(&mut json), name)
            .expect("writing to memory can't fail");
        let json = String::from_utf8(json).expect("JSON is text");
        assert_eq!(json, r#""a\u001b[31m\u009b1m\u202e\u007fé""#);
        assert_eq!(serde_json::from_str::<String>(&json).expect("valid JSON"), name);
    }
}
