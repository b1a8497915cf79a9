//! Reads manifests and configuration from files, folders and standard input.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufReader, stdin};
use std::path::{Path, PathBuf};

use muster_api::Time;
use muster_api::manifest::{Found, Object, read};
use muster_engine::config::Config;
use muster_sim::World;

use crate::failure::Failure;

/// Where the objects and the configuration come from.
#[derive(clap::Args, Clone, Debug)]
pub struct InputArgs {
    /// A manifest file, a folder of them, or - for standard input; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub files: Vec<String>,
    /// The scheduler's configuration, in Volcano's format [default: built in]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What was read, and what is worth a note but no error.
pub struct Loaded {
    pub world: World,
    pub config: Config,
    /// The objects by kind.
    pub counts: BTreeMap<&'static str, usize>,
    pub notes: Vec<String>,
}

impl InputArgs {
    /// Reads everything; all problems of all files are reported at once.
    pub fn load(&self, now: Time) -> Result<Loaded, Failure> {
        if self.files.is_empty() {
            let help = "no manifests: name a file or folder with -f, or -f - for standard input";
            return Err(Failure::Input(vec![help.to_owned()]));
        }
        self.load_any(now)
    }

    /// The same where no manifests at all are fine too.
    pub fn load_any(&self, now: Time) -> Result<Loaded, Failure> {
        let mut problems = Vec::new();
        let mut reader = Reader { world: World::at(now), ..Reader::default() };
        for name in &self.files {
            reader.read(name, &mut problems);
        }
        let config = match self.load_config() {
            Ok(config) => Some(config),
            Err(found) => {
                problems.extend(found);
                None
            }
        };
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(Failure::Input(problems));
        };
        let mut notes: Vec<String> = config.warnings.iter().map(|warning| warning.to_string()).collect();
        notes.extend(reader.notes());
        Ok(Loaded { world: reader.world, config, counts: reader.counts, notes })
    }

    fn load_config(&self) -> Result<Config, Vec<String>> {
        let Some(path) = &self.config else { return Ok(Config::builtin()) };
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| vec![format!("{name}: {}", reading(&error))])?;
        Config::parse(&name, &text).map_err(|found| found.iter().map(ToString::to_string).collect())
    }
}

/// The same mistake in a thousand pods is told so often.
const REMARKS: usize = 20;

/// What is read, as it is spelt.
const KINDS: [&str; 11] = [
    "HyperNode",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodGroup",
    "PriorityClass",
    "Queue",
    "ResourceQuota",
];

#[derive(Default)]
struct Reader {
    world: World,
    counts: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<String, usize>,
    seen: HashMap<(&'static str, String), String>,
    /// Worth a word, but no error.
    remarks: Vec<String>,
    /// PodGroups that ask for network topology or subgroups.
    topological: usize,
}

impl Reader {
    fn read(&mut self, name: &str, problems: &mut Vec<String>) {
        if name == "-" {
            self.read_stream("standard input", BufReader::new(stdin().lock()), problems);
            return;
        }
        let path = Path::new(name);
        if !path.is_dir() {
            return self.read_file(path, problems);
        }
        match manifests_in(path) {
            Ok(files) if files.is_empty() => {
                problems.push(format!("{name}: no .yaml, .yml or .json file in this folder"));
            }
            Ok(files) => files.iter().for_each(|file| self.read_file(file, problems)),
            Err(error) => problems.push(format!("{name}: {}", reading(&error))),
        }
    }

    fn read_file(&mut self, path: &Path, problems: &mut Vec<String>) {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => self.read_stream(&name, BufReader::with_capacity(1 << 16, file), problems),
            Err(error) => problems.push(format!("{name}: {}", reading(&error))),
        }
    }

    fn read_stream(&mut self, name: &str, input: impl std::io::BufRead, problems: &mut Vec<String>) {
        read(name, input, &mut |found| match found {
            Found::Error(error) => problems.push(error.to_string()),
            Found::Skipped { kind, line } => {
                match KINDS.iter().find(|known| known.eq_ignore_ascii_case(&kind)) {
                    Some(known) => problems
                        .push(format!("{name}:{line}: there is no kind {kind}: did you mean {known}?")),
                    None => *self.skipped.entry(kind).or_default() += 1,
                }
            }
            Found::Object { object, line, problems: found, unknown } => {
                for problem in &found {
                    let what = format!("{} {}", object.kind(), object.key());
                    problems.push(format!(
                        "{name}:{}: {what}: {}: {}",
                        problem.line, problem.path, problem.message
                    ));
                }
                for field in unknown {
                    let what = format!("{} {}", object.kind(), object.key());
                    self.remarks
                        .push(format!("{name}:{}: {what}: {} {}", field.line, field.path, field.message));
                }
                if found.is_empty() {
                    self.take(name, line, object, problems);
                }
            }
        });
    }

    fn take(&mut self, name: &str, line: u32, object: Object, problems: &mut Vec<String>) {
        let here = format!("{name}:{line}");
        let (kind, key) = (object.kind(), object.key());
        if let Some(there) = self.seen.insert((kind, key.clone()), here.clone()) {
            problems
                .push(format!("{here}: {kind} {key} is defined twice, first at {there}: delete one of them"));
            return;
        }
        *self.counts.entry(kind).or_default() += 1;
        self.topological += usize::from(asks_for_topology(&object));
        self.remarks.extend(remark(&object).map(|remark| format!("{here}: {remark}")));
        self.world.insert(object);
    }

    fn notes(&self) -> Vec<String> {
        let skipped = self
            .skipped
            .iter()
            .map(|(kind, count)| format!("skipped {count} of kind {kind}: not needed here"));
        let unused = [("HyperNode", "network topology"), ("PodDisruptionBudget", "eviction")];
        let unused = unused.iter().filter(|(kind, _)| self.counts.contains_key(kind));
        let unused = unused.map(|(kind, what)| {
            format!("{kind} objects are checked but have no effect yet: {what} is not built")
        });
        let topology = (self.topological > 0).then(|| {
            let count = self.topological;
            format!("networkTopology and subGroupPolicy of {count} PodGroups have no effect yet: they are placed as if they had none")
        });
        let more = self.remarks.len().saturating_sub(REMARKS);
        let more = (more > 0).then(|| format!("and {more} more like these"));
        self.remarks
            .iter()
            .take(REMARKS)
            .cloned()
            .chain(more)
            .chain(skipped)
            .chain(unused)
            .chain(topology)
            .collect()
    }
}

fn asks_for_topology(object: &Object) -> bool {
    let Object::PodGroup(group) = object else { return false };
    group.spec.network_topology.is_some() || !group.spec.sub_group_policy.is_empty()
}

/// What is allowed but hardly meant.
fn remark(object: &Object) -> Option<String> {
    let Object::PodGroup(group) = object else { return None };
    let roles: i32 = group.spec.min_task_member.values().fold(0, |sum, minimum| sum.saturating_add(*minimum));
    let minimum = group.spec.min_member;
    (minimum < roles).then(|| {
        format!(
            "PodGroup {}: minTaskMember adds up to {roles}, more than minMember {minimum}, so the roles' minimums don't hold",
            object.key()
        )
    })
}

/// The manifests of a folder and those below it, in order of their names. Hidden entries and links to folders are
/// left out: a mounted ConfigMap has its files twice.
fn manifests_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    entries.retain(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if entry.file_type()?.is_dir() {
            files.extend(manifests_in(&path)?);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) && path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

fn reading(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".into(),
        std::io::ErrorKind::InvalidData => "not a text file".into(),
        _ => error.to_string(),
    }
}

impl InputArgs {
    /// The configuration once more, for a scheduler that starts again. It was read without errors before.
    pub fn reload_config(&self) -> Config {
        self.load_config().unwrap_or_else(|_| Config::builtin())
    }
}
