//! Prints JSON values as YAML that people can read.

use serde_json::Value;

pub fn document(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }
}

fn block(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                text.push_str(&format!("{indent}{key}:"));
                below(value, depth + 1, text);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                text.push_str(&format!("{indent}-"));
                below(value, depth + 1, text);
            }
        }
        // The empty ones and scalars are the same in both languages.
        plain => text.push_str(&format!("{indent}{plain}\n")),
    }
}

fn below(value: &Value, depth: usize, text: &mut String) {
    if is_block(value) {
        text.push('\n');
        block(value, depth, text);
    } else {
        text.push_str(&format!(" {value}\n"));
    }
}
