//! Where objects and configuration come from: manifests, a live cluster, or manifests added to a
//! live cluster.

mod cluster;
mod collection;
mod error;
mod files;
mod reading;
mod remark;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use muster_api::Time;
use muster_journal::Configuration;

pub use cluster::ClusterArgs;
pub use collection::Collection;
pub use error::{InputError, Location};
pub use reading::{Loaded, Reading, parse_again};
pub use remark::{Class, Remark};
pub use verdict::Verdict;

use crate::failure::Failure;

#[derive(clap::Args, Clone, Debug)]
pub struct FileArgs {
    /// A manifest file, a folder of them, or - for standard input; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub files: Vec<String>,
}

#[derive(clap::Args, Clone, Debug)]
pub struct ConfigArgs {
    /// The scheduler's configuration, in Volcano's format, or - for standard input [default: built
    /// in]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Manifests, a live cluster, or both.
#[derive(clap::Args, Clone, Debug)]
pub struct SourceArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Objects from any source, and a configuration.
#[derive(clap::Args, Clone, Debug)]
pub struct InputArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// The name of the source in messages.
const STANDARD_INPUT: &str = "standard input";

impl ConfigArgs {
    fn is_stream(&self) -> bool {
        self.config.as_deref() == Some(Path::new("-"))
    }

    /// The text of the configuration, with a name for messages.
    fn text(&self) -> Result<Configuration, InputError> {
        let Some(path) = &self.config else { return Ok(Configuration::builtin()) };
        let text = read_text(&path.display().to_string())?;
        let name =
            if self.is_stream() { STANDARD_INPUT.into() } else { path.display().to_string() };
        Ok(Configuration { name, text })
    }
}

impl SourceArgs {
    /// Reads the manifests, and the cluster if it is named or if nothing else is.
    pub fn read(&self) -> Result<Collection, Failure> {
        let no_config = ConfigArgs { config: None };
        Ok(self.complete(Reading::of(&self.files.files, &no_config))?.collection)
    }

    /// Reads the cluster after the files: their mistakes are reported before a large cluster is
    /// read.
    fn complete(&self, reading: Reading) -> Result<Loaded, Failure> {
        let mut loaded = reading.finish()?;
        if self.is_live() {
            let listing = self.cluster.read()?;
            loaded.collection.add_live(listing, wall_clock());
        }
        Ok(loaded)
    }

    /// Whether the user said what to read.
    pub fn is_given(&self) -> bool {
        !self.files.files.is_empty() || self.cluster.is_named()
    }

    /// Whether a live cluster is part of it.
    pub fn is_live(&self) -> bool {
        self.files.files.is_empty() || self.cluster.is_named()
    }
}

impl InputArgs {
    /// Reads everything that is named. It is an error if there are no objects.
    pub fn load(&self) -> Result<Loaded, Failure> {
        self.load_with(&[])
    }

    /// The same, and separately the manifests of `--what-if`. The problems of all of them are
    /// reported at once.
    pub fn load_with(&self, more: &[String]) -> Result<Loaded, Failure> {
        let files = &self.source.files.files;
        let reading = Reading::of(files, &self.config).with_extra(more);
        let loaded = self.source.complete(reading)?;
        let without_objects = match loaded.extra.objects.is_empty() {
            true if !more.is_empty() => more,
            true if loaded.collection.objects.is_empty() => files,
            _ => return Ok(loaded),
        };
        Err(loaded.refuse(&InputError::NoObjects { files: without_objects.join(", ") }))
    }

    /// The same, but no objects are fine too.
    pub fn load_any(&self) -> Result<Loaded, Failure> {
        match self.source.is_given() {
            true => self.load(),
            false => Reading::of(&[], &self.config).finish(),
        }
    }
}

/// The text of a file, or of the standard input for "-".
pub fn read_text(name: &str) -> Result<String, InputError> {
    let text = match name {
        "-" => std::io::read_to_string(std::io::stdin().lock()),
        _ => fs::read_to_string(name),
    };
    text.map_err(|source| InputError::Unreadable { name: name.to_owned(), source })
}

/// The wall clock, in whole seconds so that the output can repeat it.
pub fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(since.as_secs() as i64 * 1000)
}
