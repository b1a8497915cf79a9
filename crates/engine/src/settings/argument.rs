//! An argument of a plugin or an action, as the documentation lists it.

pub struct Argument {
    pub name: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}
