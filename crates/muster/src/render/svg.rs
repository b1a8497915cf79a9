//! The parts of pictures. A viewer needs no fonts or scripts to show them.

use std::fmt::{Result, Write};

use super::text::width;

pub const INK: &str = "#0f172a";
pub const MUTED: &str = "#475569";
pub const LINE: &str = "#7b8ca6";

/// Begins a white page; `</svg>` ends it.
pub fn open(out: &mut String, width: i32, height: i32) -> Result {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\">"
    )?;
    writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>")
}

pub fn text(
    out: &mut String,
    (x, y): (i32, i32),
    size: i32,
    fill: &str,
    more: &str,
    text: &str,
) -> Result {
    let space = if more.is_empty() { "" } else { " " };
    writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"{space}{more}>{}</text>",
        escaped(text)
    )
}

pub fn rect(
    out: &mut String,
    (x, y): (i32, i32),
    (width, height): (i32, i32),
    more: &str,
) -> Result {
    writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {more}/>")
}

/// The approximate width of a text. It cannot be measured here, so this is an upper estimate.
pub fn text_width(text: &str, font: i32) -> i32 {
    width(text) as i32 * font * 6 / 10
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
