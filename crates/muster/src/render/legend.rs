//! A letter and a colour for each gang, so that a map reads with colours and without.

use std::collections::HashMap;

use anstyle::{Ansi256Color, AnsiColor, Color, Style};
use muster_engine::ids::GangId;
use muster_engine::model::Cluster;

/// Gangs for which no letter is left share this one.
pub const SHARED: char = '*';

/// All letters but the x, which marks closed nodes.
const LETTERS: usize = 51;

/// Backgrounds on which black letters are easy to read, with neighbours that are easy to
/// distinguish (numbers of the 256 palette).
const COLOURS: [u8; 12] = [114, 111, 221, 210, 141, 80, 216, 149, 176, 75, 222, 109];

pub struct Legend {
    /// In the order of their names.
    pub gangs: Vec<(GangId, char)>,
    by_gang: HashMap<GangId, (char, Style)>,
    /// How many gangs have no letter of their own.
    pub sharing: usize,
}

impl Legend {
    /// Letters for gangs with what they use; the largest get theirs first, since people know them
    /// by name.
    pub fn new(cluster: &Cluster, mut held: Vec<(GangId, i64)>) -> Legend {
        let key = |gang: GangId| &cluster.gangs[gang].key;
        held.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| key(a.0).cmp(key(b.0))));
        let sharing = held.len().saturating_sub(LETTERS);
        held.truncate(LETTERS);
        held.sort_by(|a, b| key(a.0).cmp(key(b.0)));
        let mut free: Vec<char> =
            ('a'..='z').chain('A'..='Z').filter(|letter| *letter != 'x').collect();
        let mut gangs = Vec::new();
        for (gang, _) in held {
            let letter = pick(key(gang), &free);
            free.retain(|&other| other != letter);
            gangs.push((gang, letter));
        }
        let style = |place: usize| {
            let ground = Ansi256Color(COLOURS[place % COLOURS.len()]);
            Style::new()
                .fg_color(Some(Color::Ansi(AnsiColor::Black)))
                .bg_color(Some(Color::Ansi256(ground)))
        };
        let by_gang = gangs
            .iter()
            .enumerate()
            .map(|(at, &(gang, letter))| (gang, (letter, style(at))))
            .collect();
        Legend { gangs, by_gang, sharing }
    }

    pub fn of(&self, gang: GangId) -> (char, Style) {
        self.by_gang.get(&gang).copied().unwrap_or((SHARED, Style::new()))
    }

    /// The same colour for pictures; `None` for a gang without a letter of its own.
    pub fn hex(&self, gang: GangId) -> Option<String> {
        let place = self.gangs.iter().position(|(known, _)| *known == gang)?;
        Some(hex(COLOURS[place % COLOURS.len()]))
    }
}

/// A colour of the palette's cube of 6 × 6 × 6, which begins at 16.
fn hex(number: u8) -> String {
    let cube = number - 16;
    let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
    let [red, green, blue] = [cube / 36, cube / 6 % 6, cube % 6].map(level);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The first letter of the name if it is free, else another letter of it, else any.
fn pick(key: &str, free: &[char]) -> char {
    let name = key.rsplit('/').next().unwrap_or(key);
    let letters = || name.chars().filter(char::is_ascii_alphabetic);
    let first = letters().take(1);
    let wanted = first.clone().chain(first.map(|c| c.to_ascii_uppercase())).chain(letters());
    wanted.into_iter().find(|letter| free.contains(letter)).unwrap_or(free[0])
}

#[cfg(test)]
mod tests {
    use super::{hex, pick};

    #[test]
    fn colours_match_those_of_the_terminal() {
        assert_eq!([114, 111, 16, 231].map(hex), ["#87d787", "#87afff", "#000000", "#ffffff"]);
    }

    #[test]
    fn letters_come_from_the_names() {
        let free: Vec<char> =
            ('a'..='z').chain('A'..='Z').filter(|letter| *letter != 'r').collect();
        assert_eq!(pick("default/wave", &free), 'w');
        assert_eq!(pick("default/ring", &free), 'R');
        assert_eq!(pick("default/42", &free), 'a');
        let free = ['i', 'x'];
        assert_eq!(pick("ring", &free), 'i');
    }
}
