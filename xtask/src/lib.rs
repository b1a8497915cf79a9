//! Derives files from the API types, so that users need no schemas to build: the custom resource
//! definitions (`crates/api/crds`) and the fields of the kinds that people write by hand
//! (`crates/api/fields.txt`). `cargo run -p muster-xtask` writes them; a test compares.

mod crds;
mod fields;

use std::path::{Path, PathBuf};

/// A file that is derived from the types.
pub struct Derived {
    pub path: PathBuf,
    pub text: String,
}

/// Every derived file with its content.
pub fn derived() -> Vec<Derived> {
    let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api");
    let definitions = crds::crds();
    let fields = Derived { path: api.join("fields.txt"), text: fields::table(&definitions) };
    let crds = definitions.iter().map(|crd| Derived {
        path: api.join(format!("crds/{}.yaml", crd.spec.names.plural)),
        text: serde_saphyr::to_string(crd).expect("a definition is YAML"),
    });
    crds.chain([fields]).collect()
}
