//! Room that is reserved for pods of a gang which will be recreated, as the annotation
//! `volcano.sh/reservations` of its PodGroup says: `[{"node":"b","role":"worker","requests":{"
//! nvidia.com/gpu":"2"},"until":"2026-11-15T08:30:00Z","pods":["1f6c…"],"gangSize":4}]`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{ResourceList, Time};

/// Room for equal pods on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    pub node: String,
    /// What is known of the recreated pods: their role and subgroup, and what they request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgroup: Option<String>,
    pub requests: ResourceList,
    pub until: Time,
    /// The uids of the pods that are moved here from another node, one for each reserved place.
    pub pods: Vec<String>,
    /// How many pods the gang has once all are recreated. More pods than this are new ones, which
    /// have no right to the reservation.
    #[serde(default, rename = "gangSize", skip_serializing_if = "Option::is_none")]
    pub gang_size: Option<u32>,
}

/// The annotation cannot be read.
#[derive(Debug, Error)]
#[error("not a list of reservations: {0}")]
pub struct ReservedError(#[from] serde_json::Error);

impl Reserved {
    pub fn read(text: &str) -> Result<Vec<Reserved>, ReservedError> {
        Ok(serde_json::from_str(text)?)
    }

    pub fn write(places: &[Reserved]) -> String {
        serde_json::to_string(places).expect("names and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_read_back_as_written() {
        let text = r#"[{"node":"b","role":"worker","requests":{"cpu":"500m","nvidia.com/gpu":"2"},"until":"2026-11-15T08:30:00.25Z","pods":["1","2"],"gangSize":4}]"#;
        let places = Reserved::read(text).expect("it is fine");
        assert_eq!(
            (places[0].role.as_deref(), places[0].subgroup.as_deref()),
            (Some("worker"), None)
        );
        assert_eq!(Reserved::write(&places), text);
        for wrong in ["", "{}", "[1]", r#"[{"node":"b"}]"#] {
            assert!(
                Reserved::read(wrong)
                    .unwrap_err()
                    .to_string()
                    .starts_with("not a list of reservations: "),
                "{wrong}"
            );
        }
    }
}
