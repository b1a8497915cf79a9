//! Entries, lists and names in a YAML mapping.

use muster_yaml::{Value, Yaml};

use crate::settings::diagnostic::{Place, Report, describe};

/// The entry of a map and the position of its key. An entry without a value counts as absent, as in
/// Go.
pub fn field<'y>(map: &'y Yaml, name: &str) -> Option<(Place, &'y Yaml)> {
    let Value::Map(entries) = &map.value else { return None };
    let (key, value) = entries.iter().find(|(key, _)| key.name == name)?;
    (value.value != Value::Null).then(|| (key.into(), value))
}

/// The items of a list under a key; none if the key is absent.
pub fn items<'y>(map: &'y Yaml, name: &str, help: &str, report: &mut Report) -> &'y [Yaml] {
    match field(map, name) {
        None => &[],
        Some((_, Yaml { value: Value::Seq(items), .. })) => items,
        Some((at, other)) => {
            report.error(at, name, format!("expected a list, found {}", describe(other)), help);
            &[]
        }
    }
}

/// The name in an item of a list, where a missing one is an error.
pub fn name<'y>(item: &'y Yaml, what: &str, report: &mut Report) -> Option<(Place, &'y str)> {
    let help = format!("write - name: and the name of the {what}");
    match field(item, "name") {
        None => {
            let message = format!("the name of the {what} is missing");
            report.error(item.into(), "name", message, help);
            None
        }
        Some((_, value)) if value.as_str().is_some() => {
            value.as_str().map(|name| (value.into(), name))
        }
        Some((at, other)) => {
            let message = format!("expected the name of the {what}, found {}", describe(other));
            report.error(at, "name", message, help);
            None
        }
    }
}

/// The map under `arguments`, if there is one.
pub fn arguments<'y>(item: &'y Yaml, report: &mut Report) -> Option<&'y Yaml> {
    let (at, value) = field(item, "arguments")?;
    if matches!(value.value, Value::Map(_)) {
        return Some(value);
    }
    let message = format!("expected a mapping, found {}", describe(value));
    report.error(at, "arguments", message, "write one argument per line, as in binpack.weight: 5");
    None
}
