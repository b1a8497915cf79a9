//! `muster topology generate`: HyperNodes from another description of the network. The same input
//! gives the same bytes, and an addition to the network adds objects and members without changing
//! the names of others.

mod fetch;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_api::core::Node;
use muster_api::manifest::{Object, document};
use muster_topology_sources::{Forest, SourceError, file, labels, places, ufm, yaml};
use serde_json::json;

use crate::failure::Failure;
use crate::input::{Collection, Remark, SourceArgs, read_text};
use crate::terminal;

/// The password must not be visible in the list of processes.
const PASSWORD: &str = "UFM_PASSWORD";

#[derive(Args)]
#[command(after_help = "Examples:
  muster topology generate --from labels --labels zone,spine,rack
  muster topology generate --from labels --labels row,rack -f nodes.yaml
  muster topology generate --from file topology.conf > hypernodes.yaml
  muster topology generate --from file racks.txt --kubeconfig admin.conf
  muster topology generate --from ufm https://ufm.example.com --ufm-user admin

With -f, --kubeconfig or --context, --from file and --from ufm leave out what is not a node there. \
The formats are described in docs/topology-generate.md.")]
pub struct GenerateArgs {
    /// The source of the network
    #[arg(long, value_enum)]
    from: Origin,
    /// The file, or - for standard input; for ufm also the address of UFM
    #[arg(value_name = "FILE|URL")]
    source: Option<String>,
    /// Labels of nodes from the top of the network to the bottom, for example zone,spine,rack
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    labels: Vec<String>,
    /// The format of the file [default: detected from its content]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Names of the levels from the top to the bottom, where the file has none [default:
    /// core,spine,leaf]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    levels: Vec<String>,
    /// What names of HyperNodes are made of
    #[arg(long, value_enum, default_value_t = Naming::Value)]
    names: Naming,
    #[command(flatten)]
    nodes: SourceArgs,
    /// The user for UFM; the password is read from the variable UFM_PASSWORD
    #[arg(long, value_name = "NAME")]
    ufm_user: Option<String>,
    /// Certificates to trust for UFM, in PEM [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ufm_ca: Option<PathBuf>,
    /// Don't check the certificate of UFM
    #[arg(long)]
    ufm_insecure: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
enum Origin {
    /// Labels of the nodes, from manifests (-f) or a live cluster
    Labels,
    /// A table, a JSON list, or Slurm's topology.conf
    File,
    /// NVIDIA UFM, or a file with its list of ports
    Ufm,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    /// One line per node: node leaf spine
    Table,
    /// [{"node": "n1", "levels": ["leaf1", "spine1"]}]
    Json,
    /// Slurm's topology.conf
    Slurm,
}

impl From<Format> for file::Format {
    fn from(format: Format) -> file::Format {
        match format {
            Format::Table => file::Format::Table,
            Format::Json => file::Format::Json,
            Format::Slurm => file::Format::Slurm,
        }
    }
}

#[derive(Copy, Clone, ValueEnum)]
enum Naming {
    /// The level and its value: rack-r07
    Value,
    /// All values from the top: rack-zone1.spine2.r07; for values that several parents have
    Path,
}

impl From<Naming> for places::Naming {
    fn from(naming: Naming) -> places::Naming {
        match naming {
            Naming::Value => places::Naming::Value,
            Naming::Path => places::Naming::Path,
        }
    }
}

#[derive(Copy, Clone, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

pub fn run(args: GenerateArgs) -> Result<(), Failure> {
    let problems = usage(&args);
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    let mut forest = read(&args)?;
    for note in std::mem::take(&mut forest.notes) {
        terminal::note(note);
    }
    let objects = forest.objects().map_err(|problems| input(&problems))?;
    let mut text = Vec::new();
    match args.output {
        Output::Yaml => objects.iter().try_for_each(|object| yaml::write(object, &mut text))?,
        Output::Json => {
            let items = objects.into_iter().map(|object| document(&object.into()));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
            serde_json::to_writer_pretty(&mut text, &list).map_err(std::io::Error::from)?;
            text.push(b'\n');
        }
    }
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// Options that exclude each other, each with what to write instead.
fn usage(args: &GenerateArgs) -> Vec<String> {
    let from =
        args.from.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let mut problems = Vec::new();
    let mut check = |wrong: bool, problem: String| problems.extend(wrong.then_some(problem));
    let labels = args.from == Origin::Labels;
    check(
        labels && args.labels.is_empty(),
        "--from labels needs --labels, from the top to the bottom: --labels zone,spine,rack".into(),
    );
    check(
        !labels && !args.labels.is_empty(),
        format!("--labels goes with --from labels, not with --from {from}"),
    );
    check(
        labels && !args.levels.is_empty(),
        "--levels does not go with --from labels: the labels are the names".into(),
    );
    check(
        labels && args.source.is_some(),
        "--from labels reads nodes: name their manifests with -f FILE, or a cluster with --kubeconfig FILE"
            .into(),
    );
    check(
        !labels && args.source.is_none(),
        format!(
            "--from {from} needs {}",
            match args.from {
                Origin::Ufm => "an address or a file: --from ufm https://ufm.example.com",
                _ => "a file: --from file topology.conf",
            }
        ),
    );
    check(
        args.from != Origin::File && args.format.is_some(),
        format!("--format goes with --from file, not with --from {from}"),
    );
    let ufm = args.ufm_user.is_some() || args.ufm_ca.is_some() || args.ufm_insecure;
    check(
        args.from != Origin::Ufm && ufm,
        format!(
            "--ufm-user, --ufm-ca and --ufm-insecure go with --from ufm, not with --from {from}"
        ),
    );
    for (option, names) in [("--labels", &args.labels), ("--levels", &args.levels)] {
        let distinct: BTreeSet<&String> = names.iter().collect();
        check(distinct.len() < names.len(), format!("{option} has a name twice: write each once"));
        check(
            distinct.iter().any(|name| name.trim().is_empty()),
            format!("{option} has an empty name: write names with one comma between them"),
        );
    }
    problems
}

fn read(args: &GenerateArgs) -> Result<Forest, Failure> {
    let source = args.source.as_deref().unwrap_or_default();
    if args.from == Origin::Labels {
        let collection = collect(&args.nodes)?;
        return labels::read(&nodes(&collection), &args.labels, args.names.into())
            .map_err(|problems| input(&problems));
    }
    let name = if source == "-" { "standard input" } else { source };
    let text = match args.from {
        Origin::Ufm if source.contains("://") => fetch::fetch(source, &access(args)?)?,
        _ => read_text(source).map_err(Failure::input)?,
    };
    let cluster = cluster(&args.nodes)?;
    let forest = match args.from {
        Origin::Ufm => {
            ufm::read(name, &text, cluster.as_ref(), &args.levels).map_err(|problem| vec![problem])
        }
        _ => file::read(name, &text, args.format.map(Into::into), &args.levels, args.names.into()),
    };
    let mut forest = forest.map_err(|problems| input(&problems))?;
    if let Some(cluster) = cluster {
        forest
            .keep(&cluster)
            .map_err(|mistake| Failure::input(format_args!("{name}: {mistake}")))?;
        forest.miss(&cluster);
    }
    Ok(forest)
}

fn input(problems: &[SourceError]) -> Failure {
    Failure::Input(problems.iter().map(ToString::to_string).collect())
}

fn access(args: &GenerateArgs) -> Result<fetch::Access, Failure> {
    let password = std::env::var(PASSWORD).ok();
    if args.ufm_user.is_some() && password.is_none() {
        return Err(Failure::input(format_args!(
            "--ufm-user needs the password in the variable {PASSWORD}, which is not set"
        )));
    }
    let password = password.filter(|_| args.ufm_user.is_some());
    Ok(fetch::Access {
        user: args.ufm_user.clone(),
        password,
        certificates: args.ufm_ca.clone(),
        insecure: args.ufm_insecure,
    })
}

fn collect(source: &SourceArgs) -> Result<Collection, Failure> {
    let collection = source.read()?;
    collection.remarks().iter().for_each(Remark::say);
    Ok(collection)
}

fn nodes(collection: &Collection) -> Vec<&Node> {
    let found = collection.objects.iter();
    found
        .filter_map(|object| if let Object::Node(node) = object { Some(&**node) } else { None })
        .collect()
}

/// The names of the cluster's nodes, if manifests or a cluster were given.
fn cluster(source: &SourceArgs) -> Result<Option<BTreeSet<String>>, Failure> {
    if !source.is_given() {
        return Ok(None);
    }
    let collection = collect(source)?;
    Ok(Some(nodes(&collection).into_iter().map(|node| node.metadata.name.clone()).collect()))
}
