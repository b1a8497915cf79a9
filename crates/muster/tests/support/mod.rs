//! What tests of several commands ask.

use serde_json::Value;

/// An object has these keys and no others.
#[track_caller]
pub fn has_keys(value: &Value, keys: &[&str]) {
    let mut found: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut keys = keys.to_vec();
    found.sort_unstable();
    keys.sort_unstable();
    assert_eq!(found, keys);
}
