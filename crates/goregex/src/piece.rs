//! A part of a pattern, with the figures of Go's syntax tree to which Go's limits apply.

use regex_syntax::hir::{Class, ClassUnicode, Hir, Look, Repetition};

pub(super) struct Piece {
    pub hir: Hir,
    /// Levels of the tree.
    pub height: usize,
    /// Instructions of Go's program.
    pub size: u64,
    /// How often the innermost part is repeated, by counts alone.
    pub copies: u64,
    shape: Shape,
}

/// Go merges neighbours of some shapes into one node. That determines the height.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// A sequence of characters. Those that ignore case do not merge with those that do not.
    Text {
        folded: bool,
    },
    /// One character of a class.
    Class,
    Sequence,
    Choice,
    Other,
}

/// How often something is repeated.
#[derive(Clone, Copy)]
pub(super) enum Times {
    ZeroOrMore,
    OneOrMore,
    ZeroOrOne,
    Counted { least: u32, most: Option<u32> },
}

impl Piece {
    fn leaf(hir: Hir, shape: Shape) -> Self {
        Self { hir, height: 1, size: 1, copies: 1, shape }
    }

    pub fn assertion(look: Look) -> Self {
        Self::leaf(Hir::look(look), Shape::Other)
    }

    /// `\B`. It also matches between the bytes of a character. There a match would be found and
    /// dropped, and a longer one around it missed. Unicode's `\b` and `\B` both fail there, and one
    /// of them matches everywhere else.
    pub fn no_word_boundary() -> Self {
        let between_characters =
            [Look::WordUnicode, Look::WordUnicodeNegate].map(Hir::look).to_vec();
        let parts = vec![Hir::alternation(between_characters), Hir::look(Look::WordAsciiNegate)];
        Self::leaf(Hir::concat(parts), Shape::Other)
    }

    pub fn class(class: ClassUnicode) -> Self {
        Self::leaf(Hir::class(Class::Unicode(class)), Shape::Class)
    }

    /// One character, given as the class of all characters that are equal to it.
    pub fn character(class: ClassUnicode, folded: bool) -> Self {
        Self::leaf(Hir::class(Class::Unicode(class)), Shape::Text { folded })
    }

    pub fn captured(self) -> Self {
        Self { height: self.height + 1, size: self.size + 2, shape: Shape::Other, ..self }
    }

    pub fn repeated(self, times: Times) -> Self {
        let (least, most) = match times {
            Times::ZeroOrMore => (0, None),
            Times::OneOrMore => (1, None),
            Times::ZeroOrOne => (0, Some(1)),
            Times::Counted { least, most } => (least, most),
        };
        let size = match times {
            Times::ZeroOrMore | Times::Counted { least: 0, most: None } => self.size + 2,
            Times::OneOrMore | Times::ZeroOrOne => self.size + 1,
            Times::Counted { least, most: None } => u64::from(least) * self.size + 1,
            Times::Counted { least, most: Some(most) } => {
                u64::from(most) * self.size + u64::from(most - least)
            }
        };
        let copies = match times {
            Times::Counted { most: Some(0), .. } => 1,
            Times::Counted { least, most } => self.copies * u64::from(most.unwrap_or(least).max(1)),
            _ => self.copies,
        };
        // We only ask whether a name matches, never how much of it. So greedy and lazy are the
        // same.
        let repetition =
            Repetition { min: least, max: most, greedy: true, sub: Box::new(self.hir) };
        let hir = Hir::repetition(repetition);
        Self { hir, height: self.height + 1, size: size.max(1), copies, shape: Shape::Other }
    }

    /// The pieces one after the other.
    pub fn sequence(mut pieces: Vec<Self>) -> Self {
        match pieces.len() {
            0 => return Self::leaf(Hir::empty(), Shape::Other),
            1 => return pieces.remove(0),
            _ => {}
        }
        let size = pieces.iter().map(|piece| piece.size).sum();
        let first = pieces[0].shape;
        let one_text =
            matches!(first, Shape::Text { .. }) && pieces.iter().all(|piece| piece.shape == first);
        let shape = if one_text { first } else { Shape::Sequence };
        Self::joined(pieces, shape, size, Hir::concat)
    }

    /// Any one of the pieces.
    pub fn choice(mut pieces: Vec<Self>) -> Self {
        if pieces.len() == 1 {
            return pieces.remove(0);
        }
        if pieces.iter().all(Self::is_one_character) {
            return Self::joined(pieces, Shape::Class, 1, Hir::alternation);
        }
        let size = pieces.iter().map(|piece| piece.size + 1).sum::<u64>() - 1;
        Self::joined(pieces, Shape::Choice, size, Hir::alternation)
    }

    fn is_one_character(&self) -> bool {
        match self.shape {
            Shape::Text { .. } => self.size == 1,
            shape => shape == Shape::Class,
        }
    }

    fn joined(pieces: Vec<Self>, shape: Shape, size: u64, join: fn(Vec<Hir>) -> Hir) -> Self {
        let height = match shape {
            Shape::Text { .. } | Shape::Class => 1,
            // A piece of the same shape is taken apart and adds no level.
            _ => {
                let levels = |piece: &Self| piece.height + usize::from(piece.shape != shape);
                pieces.iter().map(levels).max().unwrap_or(1)
            }
        };
        let copies = pieces.iter().map(|piece| piece.copies).max().unwrap_or(1);
        let hir = join(pieces.into_iter().map(|piece| piece.hir).collect());
        Self { hir, height, size, copies, shape }
    }
}
