//! Unicode's classes as Go has them. Go 1.26 has Unicode 15.0; our tables are newer.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::class::{complement, folded};

/// The names that Go knows besides the short ones of the categories, with their meaning.
const CATEGORY_NAMES: &[(&str, &str)] = &[
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Lc", "LC"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

#[rustfmt::skip]
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl",
    "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// The scripts that Go finds. It removes `_` from the requested name but not from its own names. So
/// it finds no script whose name has one, and not SignWriting.
#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali",
    "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham",
    "Cherokee", "Chorasmian", "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret",
    "Devanagari", "Dogra", "Duployan", "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic",
    "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran", "Hebrew",
    "Hiragana", "Inherited", "Javanese", "Kaithi", "Kannada", "Katakana", "Kawi", "Kharoshthi", "Khmer",
    "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Lisu", "Lycian", "Lydian", "Mahajani",
    "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen", "Medefaidrin", "Miao", "Modi",
    "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean", "Nandinagari", "Newa", "Nko", "Nushu", "Ogham",
    "Oriya", "Osage", "Osmanya", "Palmyrene", "Phoenician", "Rejang", "Runic", "Samaritan", "Saurashtra",
    "Sharada", "Shavian", "Siddham", "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog",
    "Tagbanwa", "Takri", "Tamil", "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh",
    "Tirhuta", "Toto", "Ugaritic", "Vai", "Vithkuqi", "Wancho", "Yezidi", "Yi",
];

/// The class with a name, which is compared without case, spaces, `-` and `_`. If case is ignored,
/// the characters that differ from it in case are in it too.
pub(super) fn named(name: &str, fold: bool) -> Option<ClassUnicode> {
    let class = exactly(name)?;
    // Go forgets to ignore case for letters that have one.
    let fold = fold && !["Lc", "Casedletter"].contains(&canonical(name).as_str());
    Some(if fold { folded(class) } else { class })
}

fn exactly(name: &str) -> Option<ClassUnicode> {
    let name = canonical(name);
    match name.as_str() {
        "Any" => return Some(property("Any")),
        "Ascii" => return Some(property("ASCII")),
        "Assigned" => return Some(KNOWN.clone()),
        _ => {}
    }
    if CATEGORIES.contains(&name.as_str()) {
        return Some(category(&name));
    }
    if SCRIPTS.contains(&name.as_str()) {
        return Some(known(property(&format!("sc={name}"))));
    }
    let (_, short) = CATEGORY_NAMES.iter().find(|(long, _)| *long == name)?;
    Some(category(short))
}

/// The first letter large, all others small.
fn canonical(name: &str) -> String {
    let mut canonical: String = name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect();
    canonical.make_ascii_lowercase();
    if let Some(first) = canonical.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    canonical
}

/// The characters that have another case in our tables but not in Go's.
pub(super) fn newly_cased() -> &'static ClassUnicode {
    &NEWLY_CASED
}

static NEWLY_CASED: LazyLock<ClassUnicode> = LazyLock::new(|| {
    let mut class = complement(&property("gc=Cn"));
    class.difference(&KNOWN);
    // These are older, but have had another case only since Unicode 15.1.
    for c in ['\u{390}', '\u{3b0}', '\u{1fd3}', '\u{1fe3}', '\u{fb05}', '\u{fb06}'] {
        class.push(ClassUnicodeRange::new(c, c));
    }
    class
});

/// The characters that Go knows.
static KNOWN: LazyLock<ClassUnicode> = LazyLock::new(|| {
    let mut class = property("age=15.0");
    class.difference(&property("gc=Cn"));
    class
});

fn known(mut class: ClassUnicode) -> ClassUnicode {
    class.intersect(&KNOWN);
    class
}

fn category(short: &str) -> ClassUnicode {
    match short {
        // Halves of surrogate pairs are not characters.
        "Cs" => ClassUnicode::empty(),
        "Cn" => complement(&KNOWN),
        "C" => {
            let mut class = complement(&KNOWN);
            class.union(&property("gc=C"));
            class
        }
        _ => {
            let mut class = known(property(&format!("gc={short}")));
            // This mark has had a width since Unicode 16.0.
            let mark = ClassUnicode::new([ClassUnicodeRange::new('\u{1171e}', '\u{1171e}')]);
            match short {
                "Mc" => class.difference(&mark),
                "Mn" => class.union(&mark),
                _ => {}
            }
            class
        }
    }
}

/// A class by its name in our tables.
fn property(name: &str) -> ClassUnicode {
    let hir = regex_syntax::parse(&format!(r"\p{{{name}}}")).expect("a class that the tables have");
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => class,
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).expect("the tables have characters");
            ClassUnicode::new(text.chars().map(|c| ClassUnicodeRange::new(c, c)))
        }
        other => unreachable!("a property is a class of one or more characters, not {other:?}"),
    }
}
