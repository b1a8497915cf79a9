//! One page of a list. An object in it that can't be read must not hide the others.

use muster_api::kinds::Resource;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub struct Page<T> {
    #[serde(default)]
    pub metadata: PageMeta,
    pub items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMeta {
    pub resource_version: String,
    #[serde(rename = "continue")]
    pub next: Option<String>,
}

/// The objects of a page. If one of them can't be read, each is read alone and notes are made of
/// the bad ones.
pub fn decode<T: Resource>(
    text: &str,
    notes: &mut Vec<String>,
) -> Result<Page<T>, serde_json::Error> {
    if let Ok(page) = serde_json::from_str::<Page<T>>(text) {
        return Ok(page);
    }
    let Page { metadata, items } = serde_json::from_str::<Page<Value>>(text)?;
    let read = |item: Value| match T::deserialize(&item) {
        Ok(object) => Some(object),
        Err(error) => {
            notes.push(format!(
                "{} {} can't be read and is left out: {error}",
                T::KIND,
                key(&item)
            ));
            None
        }
    };
    let items = items.into_iter().filter_map(read).collect();
    Ok(Page { metadata, items })
}

fn key(item: &Value) -> String {
    let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}
