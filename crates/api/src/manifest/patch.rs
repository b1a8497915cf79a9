//! JSON merge patches (RFC 7386), as an API server applies them.

use serde_json::{Map, Value};

/// Maps are merged, null removes a field, and everything else takes the place of what was there.
pub fn merge_patch(object: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(map) = object else { unreachable!("made above") };
    for (key, value) in fields {
        match value {
            Value::Null => drop(map.remove(&key)),
            value => merge_patch(map.entry(key).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_follow_the_examples_of_rfc_7386() {
        for (mut object, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            merge_patch(&mut object, patch);
            assert_eq!(object, expected);
        }
    }
}
