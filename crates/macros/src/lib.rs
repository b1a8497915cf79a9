//! Which questions a plugin answers, derived from the functions that it overrides. So no plugin can
//! override a function without listing it, in which case it would never be called.
//!
//! These two macros only find the names of functions. What is made of them is defined next to the
//! table of questions: `crates/engine/src/policy/question.rs`. The
//! examples of what compiles and what does not are there too; in short:
//!
//! ```ignore
//! #[answers]
//! impl Plugin for LongNamesFirst {
//!     fn pod_urgency(&self, cluster: &Cluster, pod: PodId) -> i64 {
//!         cluster.pods.name(pod).len() as i64
//!     }
//! }
//! ```

use proc_macro::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// On `impl Plugin for …`: adds the function `answers`, which lists the questions that the
/// functions of the block answer.
#[proc_macro_attribute]
pub fn answers(_: TokenStream, item: TokenStream) -> TokenStream {
    let (mut tokens, body) = head_and_body(item);
    let answers = call("::muster_engine::answers_of!", functions(&body));
    let both: TokenStream = [body, answers].into_iter().collect();
    tokens.extend([in_braces(both)]);
    tokens
}

/// On the trait `Plugin`: each of its functions must have a question, except for `answers` itself.
#[proc_macro_attribute]
pub fn each_function_has_a_question(_: TokenStream, item: TokenStream) -> TokenStream {
    let (_, body) = head_and_body(item.clone());
    let asked = functions(&body).into_iter().filter(|name| name.to_string() != "answers");
    [item, call("::muster_engine::have_questions!", asked)].into_iter().collect()
}

/// The block at the end of an item, and everything before it.
fn head_and_body(item: TokenStream) -> (TokenStream, TokenStream) {
    let mut head: Vec<TokenTree> = item.into_iter().collect();
    let body = match head.pop() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => group.stream(),
        _ => panic!("expected a trait, or an impl of one"),
    };
    (head.into_iter().collect(), body)
}

/// The names of the functions in a block. Functions inside functions are in blocks of their own and
/// don't count.
fn functions(body: &TokenStream) -> Vec<Ident> {
    let mut names = Vec::new();
    let mut follows_fn = false;
    for token in body.clone() {
        let TokenTree::Ident(word) = token else {
            follows_fn = false;
            continue;
        };
        let is_fn = word.to_string() == "fn";
        names.extend(follows_fn.then_some(word));
        follows_fn = is_fn;
    }
    names
}

/// A macro called with names. They keep their positions in the source, for messages.
fn call(path: &str, names: impl IntoIterator<Item = Ident>) -> TokenStream {
    let mut tokens: TokenStream = path.parse().expect("a path");
    let names: TokenStream = names.into_iter().map(TokenTree::Ident).collect();
    tokens.extend([in_braces(names)]);
    tokens
}

fn in_braces(inside: TokenStream) -> TokenTree {
    Group::new(Delimiter::Brace, inside).into()
}
