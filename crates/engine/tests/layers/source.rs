//! What the layer test knows of source files: modules, the names that they declare and import, and
//! the types for which they have an `impl`. What is for tests only is left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The names of a module's parents and its own, from the top of the crate.
pub type ModulePath = Vec<String>;

#[derive(Default)]
pub struct Source {
    pub modules: BTreeMap<ModulePath, Module>,
    /// The modules of `macro_rules`: exported ones are found at the top of the crate.
    pub macros: BTreeMap<String, ModulePath>,
}

#[derive(Default)]
pub struct Module {
    /// The file that the module is in, from `src`.
    pub file: String,
    pub items: BTreeSet<String>,
    /// Words in macros, any of which may be the name of an item that the macro makes.
    pub made_by_macros: BTreeSet<String>,
    pub uses: Vec<Use>,
    /// Paths outside of `use` that begin with `crate`, `self` or `super`.
    pub paths: Vec<Path>,
    pub impls: Vec<Impl>,
}

pub struct Use {
    /// The name that is imported; none for `*`.
    pub name: Option<String>,
    pub path: Path,
}

#[derive(Clone)]
pub struct Path {
    pub names: Vec<String>,
    pub line: usize,
}

pub struct Impl {
    /// The trait, unless it is an inherent `impl`.
    pub of: Option<Path>,
    pub subject: Path,
}

/// Our own name can stand for `crate`: see `extern crate self` in `lib.rs`.
pub const TOP: [&str; 2] = ["crate", "muster_engine"];

/// What a module declares with a name behind it.
const DECLARING: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

impl Source {
    /// Reads `lib.rs` and what belongs to it, as the compiler does.
    pub fn read(files: &BTreeMap<String, String>) -> Source {
        let mut reader = Reader { files, source: Source::default() };
        reader.file(Vec::new(), "lib.rs");
        reader.source
    }
}

struct Reader<'f> {
    files: &'f BTreeMap<String, String>,
    source: Source,
}

impl Reader<'_> {
    fn file(&mut self, at: ModulePath, file: &str) {
        let text = &self.files[file];
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        self.module(at, file, tokens);
    }

    fn module(&mut self, at: ModulePath, file: &str, tokens: TokenStream) {
        let module = Module { file: file.to_owned(), ..Module::default() };
        self.source.modules.insert(at.clone(), module);
        self.tokens(&at, &without_tests(tokens), true);
    }

    /// Goes through the tokens of a module, or of a block in it, from one declaration or path to
    /// the next.
    fn tokens(&mut self, at: &ModulePath, tokens: &[TokenTree], is_module: bool) {
        let mut next = 0;
        while let Some(token) = tokens.get(next) {
            let rest = &tokens[next..];
            next += match (token, word(rest.get(1))) {
                (TokenTree::Group(group), _) => {
                    self.tokens(at, &without_tests(group.stream()), false);
                    1
                }
                (TokenTree::Literal(literal), _) => {
                    let line = literal.span().start().line;
                    self.path_in_text(at, &literal.to_string(), line);
                    1
                }
                (TokenTree::Punct(mark), _) if is_module && mark.as_char() == '!' => {
                    let body = rest.iter().find_map(group_of).expect("a macro has a body");
                    words(body.stream(), &mut self.here(at).made_by_macros);
                    1
                }
                (TokenTree::Punct(_), _) => 1,
                (TokenTree::Ident(keyword), name) => match (keyword.to_string().as_str(), name) {
                    ("use", _) if !is_punct(rest.get(1), '<') => self.import(at, rest),
                    ("mod", Some(name)) => self.child(at, &name, &rest[2]),
                    ("impl", _) if is_module && begins_item(&tokens[..next]) => {
                        self.here(at).impls.extend(implementation(rest));
                        1
                    }
                    ("macro_rules", _) if is_module => {
                        let name = word(rest.get(2)).expect("a macro has a name");
                        self.here(at).items.insert(name.clone());
                        self.source.macros.insert(name, at.clone());
                        1
                    }
                    (keyword, Some(name)) if is_module && DECLARING.contains(&keyword) => {
                        self.here(at).items.insert(name);
                        1
                    }
                    (first, _) if TOP.contains(&first) || ["self", "super"].contains(&first) => {
                        let (path, length) = path(rest);
                        if path.names.len() > 1 {
                            self.here(at).paths.push(path);
                        }
                        length
                    }
                    _ => 1,
                },
            };
        }
    }

    fn here(&mut self, at: &ModulePath) -> &mut Module {
        self.source.modules.get_mut(at).expect("the module that is read")
    }

    /// `mod name;` or `mod name { … }`.
    fn child(&mut self, at: &ModulePath, name: &str, body: &TokenTree) -> usize {
        let mut child = at.clone();
        child.push(name.to_owned());
        if let Some(group) = group_of(body) {
            let file = self.here(at).file.clone();
            self.module(child, &file, group.stream());
        } else {
            let base = child.join("/");
            let candidates = [format!("{base}.rs"), format!("{base}/mod.rs")];
            let file = candidates.iter().find(|file| self.files.contains_key(*file));
            self.file(child, file.unwrap_or_else(|| panic!("no file for module {base}")));
        }
        3
    }

    fn import(&mut self, at: &ModulePath, tokens: &[TokenTree]) -> usize {
        let is_end = |token: &TokenTree| is_punct(Some(token), ';');
        let end = tokens.iter().position(is_end).expect("a use ends with a semicolon");
        if !is_punct(tokens.get(1), ':') {
            imports(&tokens[1..end], &[], &mut self.here(at).uses);
        }
        end
    }

    /// A path in quotes, as in `#[serde(with = "crate::…")]`.
    fn path_in_text(&mut self, at: &ModulePath, text: &str, line: usize) {
        let text = text.trim_matches('"');
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if text.starts_with("crate::") && text.split("::").all(is_name) {
            let names = text.split("::").map(str::to_owned).collect();
            self.here(at).paths.push(Path { names, line });
        }
    }
}

/// The tokens without `#[cfg(test)]` and the item that follows each.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let attribute = tokens.peek().filter(|_| is_punct(Some(&token), '#'));
        if attribute.is_none_or(|attribute| attribute.to_string() != "[cfg (test)]") {
            kept.push(token);
            continue;
        }
        let ends = |token: &TokenTree| {
            is_punct(Some(token), ';')
                || group_of(token).is_some_and(|group| group.delimiter() == Delimiter::Brace)
        };
        tokens.find(ends);
        tokens.next_if(|token| is_punct(Some(token), ';'));
    }
    kept
}

/// What the tokens between `use` and its end import.
fn imports(tokens: &[TokenTree], prefix: &[String], uses: &mut Vec<Use>) {
    let mut names = prefix.to_vec();
    let mut renamed = None;
    let mut is_glob = false;
    let Some(first) = tokens.first() else { return };
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inside.split(|token| is_punct(Some(token), ',')) {
                    imports(part, &names, uses);
                }
                return;
            }
            TokenTree::Ident(ident) if ident == "as" => {
                renamed = word(tokens.get(place + 1));
                break;
            }
            TokenTree::Ident(ident) => names.push(ident.to_string()),
            token => is_glob |= is_punct(Some(token), '*'),
        }
    }
    if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
        names.pop();
    }
    let name = renamed.or_else(|| names.last().cloned()).filter(|_| !is_glob);
    uses.push(Use { name, path: Path { names, line: first.span().start().line } });
}

/// The path with which the tokens begin, and how many of them it has.
fn path(tokens: &[TokenTree]) -> (Path, usize) {
    let line = tokens[0].span().start().line;
    let mut names: Vec<String> = word(tokens.first()).into_iter().collect();
    let mut end = 1;
    while is_punct(tokens.get(end), ':')
        && is_punct(tokens.get(end + 1), ':')
        && let Some(name) = word(tokens.get(end + 2))
    {
        names.push(name);
        end += 3;
    }
    (Path { names, line }, end)
}

/// The trait and the type of an `impl`; nothing for types without a name, such as slices.
fn implementation(tokens: &[TokenTree]) -> Option<Impl> {
    let mut depth = 0;
    let mut starts = vec![1];
    for (place, token) in tokens.iter().enumerate().skip(1) {
        let is_arrow = is_punct(tokens.get(place - 1), '-');
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '<' => depth += 1,
            TokenTree::Punct(mark) if mark.as_char() == '>' && !is_arrow => {
                depth -= 1;
                if depth == 0 && starts == [1] && is_punct(tokens.get(1), '<') {
                    starts = vec![place + 1];
                }
            }
            TokenTree::Ident(word) if depth == 0 && word == "for" => starts.push(place + 1),
            TokenTree::Ident(word) if depth == 0 && word == "where" => break,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            _ => {}
        }
    }
    let mut paths = starts.into_iter().map(|start| {
        let is_mark = |token: &TokenTree| matches!(token, TokenTree::Punct(_));
        let named = tokens[start..].iter().position(|token| !is_mark(token))? + start;
        word(tokens.get(named)).map(|_| path(&tokens[named..]).0)
    });
    let (first, second) = (paths.next()?, paths.next());
    match second {
        Some(subject) => Some(Impl { of: Some(first?), subject: subject? }),
        None => Some(Impl { of: None, subject: first? }),
    }
}

/// Whether an item can begin after these tokens.
fn begins_item(before: &[TokenTree]) -> bool {
    before.last().is_none_or(|last| {
        let after_unsafe = word(Some(last)).is_some_and(|word| word == "unsafe");
        let after_group = group_of(last).is_some_and(|g| g.delimiter() != Delimiter::Parenthesis);
        after_unsafe || after_group || is_punct(Some(last), ';')
    })
}

fn words(tokens: TokenStream, words: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => self::words(group.stream(), words),
            TokenTree::Ident(ident) => _ = words.insert(ident.to_string()),
            _ => {}
        }
    }
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn group_of(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    }
}

fn is_punct(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}
