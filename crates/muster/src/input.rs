//! Where objects and configuration come from: manifests, a live cluster, or manifests on top of a
//! live cluster.

mod cluster;
mod collection;
mod files;

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use muster_api::Time;
use muster_engine::config::Config;
use muster_sim::World;

pub use cluster::ClusterArgs;
pub use collection::Collection;

use crate::failure::Failure;

#[derive(clap::Args, Clone, Debug)]
pub struct FileArgs {
    /// A manifest file, a folder of them, or - for standard input; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub files: Vec<String>,
}

#[derive(clap::Args, Clone, Debug)]
pub struct ConfigArgs {
    /// The scheduler's configuration, in Volcano's format [default: built in]
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

/// Objects from anywhere, and a configuration.
#[derive(clap::Args, Clone, Debug)]
pub struct InputArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// What was read, and what is worth a note but no error.
pub struct Loaded {
    pub collection: Collection,
    pub config: Config,
    pub notes: Vec<String>,
}

impl Loaded {
    /// The embedded cluster with all that was read in it.
    pub fn world(self, now: Time) -> (World, Config) {
        let mut world = World::at(now);
        self.collection.objects.into_iter().for_each(|object| world.insert(object));
        (world, self.config)
    }
}

impl FileArgs {
    /// Reads manifests only.
    pub fn load(&self, config: &ConfigArgs) -> Result<Loaded, Failure> {
        if self.files.is_empty() {
            let help = "no manifests: name a file or folder with -f, or -f - for standard input";
            return Err(Failure::Input(vec![help.to_owned()]));
        }
        let (collection, config) = self.read(config)?;
        Ok(loaded(collection, config))
    }

    /// All problems of all files, those of the configuration too, are reported at once.
    fn read(&self, config: &ConfigArgs) -> Result<(Collection, Config), Failure> {
        let mut collection = Collection::default();
        let mut problems = files::read(&self.files, &mut collection);
        match config.load() {
            Ok(config) if problems.is_empty() => return Ok((collection, config)),
            Ok(_) => {}
            Err(found) => problems.extend(found),
        }
        Err(Failure::Input(problems))
    }
}

impl ConfigArgs {
    fn load(&self) -> Result<Config, Vec<String>> {
        let Some(path) = &self.config else { return Ok(Config::builtin()) };
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| vec![format!("{name}: {}", files::reading(&error))])?;
        Config::parse(&name, &text).map_err(|found| found.iter().map(ToString::to_string).collect())
    }
}

impl SourceArgs {
    /// Reads the manifests, and the cluster where it is named or nothing else is.
    pub fn read(&self) -> Result<Collection, Failure> {
        let (mut collection, _) = self.files.read(&ConfigArgs { config: None })?;
        self.add_cluster(&mut collection)?;
        Ok(collection)
    }

    /// Files come first: their mistakes are told before a large cluster is read.
    fn add_cluster(&self, collection: &mut Collection) -> Result<(), Failure> {
        if self.is_live() {
            let listing = self.cluster.read()?;
            collection.add_live(listing, wall_clock());
        }
        Ok(())
    }

    /// Whether someone said what to read.
    pub fn is_given(&self) -> bool {
        !self.files.files.is_empty() || self.cluster.is_named()
    }

    /// Whether a live cluster is part of it.
    pub fn is_live(&self) -> bool {
        self.files.files.is_empty() || self.cluster.is_named()
    }
}

impl InputArgs {
    pub fn load(&self) -> Result<Loaded, Failure> {
        let (mut collection, config) = self.source.files.read(&self.config)?;
        self.source.add_cluster(&mut collection)?;
        Ok(loaded(collection, config))
    }

    /// The same, and apart from it manifests that come on top. The problems of all of them are
    /// reported at once.
    pub fn load_with(&self, more: &[String]) -> Result<(Loaded, Collection), Failure> {
        let mut extra = Collection::default();
        let mut problems = files::read(more, &mut extra);
        let streams =
            self.source.files.files.iter().chain(more).filter(|name| *name == "-").count();
        if streams > 1 {
            problems.insert(
                0,
                "standard input can be read once only: give - to one of them".to_owned(),
            );
        }
        match self.source.files.read(&self.config) {
            Ok((mut collection, config)) if problems.is_empty() => {
                self.source.add_cluster(&mut collection)?;
                Ok((loaded(collection, config), extra))
            }
            Ok(_) => Err(Failure::Input(problems)),
            Err(Failure::Input(found)) => Err(Failure::Input([found, problems].concat())),
            Err(other) => Err(other),
        }
    }

    /// The same where no objects at all are fine too.
    pub fn load_any(&self) -> Result<Loaded, Failure> {
        match self.source.files.files.is_empty() && !self.source.cluster.is_named() {
            true => Ok(loaded(Collection::default(), self.config.load().map_err(Failure::Input)?)),
            false => self.load(),
        }
    }

    /// The configuration once more, for another scheduler or one that starts again. It was read
    /// without errors before.
    pub fn reload_config(&self) -> Config {
        self.config.load().unwrap_or_else(|_| Config::builtin())
    }
}

/// The text of a file, or of the standard input for "-".
pub fn read_text(name: &str) -> Result<String, String> {
    let text = match name {
        "-" => std::io::read_to_string(std::io::stdin().lock()),
        _ => fs::read_to_string(name),
    };
    text.map_err(|error| format!("{name}: {}", files::reading(&error)))
}

/// The wall clock, in whole seconds so that the output can repeat it.
pub fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(since.as_secs() as i64 * 1000)
}

fn loaded(collection: Collection, config: Config) -> Loaded {
    let mut notes: Vec<String> =
        config.warnings.iter().map(|warning| warning.to_string()).collect();
    notes.extend(collection.notes());
    Loaded { collection, config, notes }
}
