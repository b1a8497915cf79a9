//! Runs the scheduler on a case, as a user would.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::case::Case;
use crate::output::Output;

/// The `muster` binary, and a folder of its own for the files of one case at a time.
pub struct Runner {
    pub muster: PathBuf,
    pub folder: PathBuf,
}

impl Runner {
    pub fn output(&self, case: &Case) -> Result<Output, String> {
        case.write(&self.folder).map_err(|error| format!("writing the case: {error}"))?;
        Output::parse(&run(&self.muster, &self.folder, &case.arguments())?)
    }

    /// The output of a run with the same objects in another order.
    pub fn shuffled_output(&self, case: &Case) -> Result<Output, String> {
        case.write(&self.folder)
            .and_then(|()| std::fs::write(self.folder.join("cluster.yaml"), case.shuffled_yaml()))
            .map_err(|error| format!("writing the case: {error}"))?;
        Output::parse(&run(&self.muster, &self.folder, &case.arguments())?)
    }
}

fn run(muster: &Path, folder: &Path, arguments: &[String]) -> Result<String, String> {
    let output = Command::new(muster)
        .arg("simulate")
        .arg("-f")
        .arg(folder.join("cluster.yaml"))
        .arg("--config")
        .arg(folder.join("config.yaml"))
        .args(arguments)
        .output()
        .map_err(|error| format!("running {}: {error}", muster.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("muster ended with {}: {text}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
