//! `muster generate`: made-up clusters and workloads as manifests, for trials and simulations.

use std::io::{self, Write};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use muster_api::manifest::{self, Found};
use muster_api::{Time, TimeError};
use muster_sim::generate::{self, Amount, ClusterSpec, Profile, Template, WorkloadSpec};
use thiserror::Error;

use super::manifests::{Format, JsonList, ManifestArgs};
use crate::failure::Failure;
use crate::terminal;

/// Write a made-up cluster or workload as manifests
#[derive(Args, Debug)]
#[command(long_about = "Write a made-up cluster or workload as manifests.\n\n\
    Sizes, run times and arrivals follow public traces of real clusters. The same flags give the same bytes on \
    every machine.")]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Cluster(ClusterArgs),
    Workload(WorkloadArgs),
}

/// Write nodes, their network, queues and priority classes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    muster generate cluster --nodes 1000 --to cluster.yaml\n  \
    muster generate cluster nvl72 --nodes 144 --queues 40\n  \
    muster generate cluster openb --nodes 1523 --no-network --to openb.yaml")]
struct ClusterArgs {
    /// What the nodes are like
    #[arg(default_value = Template::Classic.name(), value_parser = templates())]
    template: Template,

    /// How many nodes
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    nodes: u32,

    /// The old form of --nodes
    #[arg(short, hide = true, value_name = "NODES", conflicts_with = "nodes", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    n: Option<u32>,

    /// Nodes under one leaf switch, or in one rack [default: 32, nvl72: 18]
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    nodes_per_leaf: Option<u32>,

    /// Leaves, or racks, under one spine switch [default: 16]
    #[arg(long, value_name = "LEAVES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    leaves_per_spine: Option<u32>,

    /// GPUs of a node, for classic and nvl72 [default: 8, nvl72: 4]
    #[arg(long, value_name = "GPUS", value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus_per_node: Option<u32>,

    /// How many queues share the cluster; 0 for none
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    queues: u32,

    /// Leave out the HyperNodes; nodes keep their topology labels
    #[arg(long)]
    no_network: bool,

    #[command(flatten)]
    common: Common,
}

/// Write gangs and their pods, in the order in which they arrive
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    muster generate workload --gangs 5000 --hours 48 --to work.yaml\n  \
    muster generate workload llm --load 0.95 --cluster-gpus 1024\n  \
    muster generate workload research --gpus-per-pod 4 --typed nvl72\n  \
    muster generate workload serving --gangs 200 --namespace inference\n\n\
    Take as many --queues as the cluster has, then the names match.")]
struct WorkloadArgs {
    /// What the gangs are like
    #[arg(default_value = Profile::Research.name(), value_parser = profiles())]
    profile: Profile,

    /// How many gangs
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    gangs: u64,

    /// Instead of a number of gangs: work for this share of the GPUs, for example 0.95
    #[arg(long, value_name = "FACTOR", value_parser = parse_load, requires = "cluster_gpus", conflicts_with = "gangs")]
    load: Option<u32>,

    /// How many GPUs the cluster has, for --load
    #[arg(long, value_name = "GPUS", requires = "load", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    cluster_gpus: Option<u32>,

    /// The window in which the gangs arrive
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8_784))]
    hours: u32,

    /// How many queues the gangs go to; 0 for the queue "default" only
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    queues: u32,

    /// The most GPUs in one pod; a gang with more has several pods
    #[arg(long, value_name = "GPUS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus_per_pod: u32,

    /// The most GPUs in one gang [default: no limit; with --load, half the cluster]
    #[arg(long, value_name = "GPUS", value_parser = clap::value_parser!(u32).range(1..))]
    largest: Option<u32>,

    /// Let a third of the gangs request a GPU model that clusters of this template have
    #[arg(long, value_name = "TEMPLATE", value_parser = templates())]
    typed: Option<Template>,

    /// Keep every gang in one network domain of this tier; 1 is a leaf, 2 a spine
    #[arg(long, value_name = "TIER", value_parser = clap::value_parser!(u32).range(1..=3))]
    highest_tier: Option<u32>,

    /// Where the gangs and pods live
    #[arg(short, long, default_value = "default", value_parser = parse_namespace)]
    namespace: String,

    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Common {
    /// Another seed gives a different cluster or workload of the same kind
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// When time begins, for example 2026-03-01T08:00:00Z
    #[arg(long, value_name = "TIME", default_value = "2026-01-05T00:00:00Z", value_parser = parse_start)]
    start: i64,

    #[command(flatten)]
    to: ManifestArgs,
}

/// Arguments that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UsageError {
    #[error(
        "--gpus-per-node does not apply to {template}, whose nodes differ; leave it out, or take classic or nvl72"
    )]
    NodesDiffer { template: &'static str },
    #[error("--load counts GPUs and the profile cpu has none; write --gangs instead")]
    LoadWithoutGpus,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("write a number from 0.01 to 10, for example 0.95 for 95 % of the GPUs")]
struct LoadError;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("write up to 63 of a-z, 0-9 and - (not at the ends)")]
struct NamespaceError;

pub fn run(args: GenerateArgs) -> Result<(), Failure> {
    match args.what {
        What::Cluster(args) => {
            let spec = cluster_spec(&args).map_err(Failure::input)?;
            if let Some(nodes) = args.n {
                terminal::warn(format_args!("-n is a namespace elsewhere: write --nodes {nodes}"));
            }
            write(&args.common.to, |out| generate::cluster(&spec, out))
        }
        What::Workload(args) => {
            let spec = workload_spec(&args).map_err(Failure::input)?;
            write(&args.common.to, |out| generate::workload(&spec, out))
        }
    }
}

fn write(
    to: &ManifestArgs,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    to.check()?;
    match to.format() {
        Format::Yaml => to.write(fill),
        Format::Json => {
            let mut yaml = Vec::new();
            fill(&mut yaml)?;
            to.write(|out| as_json(&yaml, out))
        }
    }
}

/// The generators write YAML, which is parsed again here.
fn as_json(yaml: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut list = JsonList::begin(out)?;
    let mut result = Ok(());
    manifest::read("the generated manifests", yaml, &mut |found| match found {
        Found::Object { object, .. } if result.is_ok() => result = list.add(&object),
        Found::Object { .. } => {}
        other => unreachable!("generators write objects that are known, not {other:?}"),
    });
    result?;
    list.end()
}

fn cluster_spec(args: &ClusterArgs) -> Result<ClusterSpec, UsageError> {
    let template = args.template;
    if args.gpus_per_node.is_some() && !template.is_uniform() {
        return Err(UsageError::NodesDiffer { template: template.name() });
    }
    Ok(ClusterSpec {
        template,
        nodes: args.n.unwrap_or(args.nodes),
        nodes_per_leaf: args.nodes_per_leaf.unwrap_or(template.nodes_per_leaf()),
        leaves_per_spine: args.leaves_per_spine.unwrap_or(template.leaves_per_spine()),
        gpus_per_node: args.gpus_per_node,
        queues: args.queues,
        network: !args.no_network,
        seed: args.common.seed,
        start: args.common.start,
    })
}

fn workload_spec(args: &WorkloadArgs) -> Result<WorkloadSpec, UsageError> {
    let amount = match (args.load, args.cluster_gpus) {
        (Some(_), _) if args.profile == Profile::Cpu => {
            return Err(UsageError::LoadWithoutGpus);
        }
        (Some(percent), Some(gpus)) => Amount::Load { percent, gpus },
        _ => Amount::Gangs(args.gangs),
    };
    Ok(WorkloadSpec {
        profile: args.profile,
        amount,
        hours: args.hours,
        queues: args.queues,
        gpus_per_pod: args.gpus_per_pod,
        largest: args.largest,
        typed: args.typed,
        highest_tier: args.highest_tier,
        namespace: args.namespace.clone(),
        seed: args.common.seed,
        start: args.common.start,
    })
}

fn templates() -> impl TypedValueParser<Value = Template> {
    let value = |template: Template| PossibleValue::new(template.name()).help(template.summary());
    PossibleValuesParser::new(Template::ALL.map(value)).map(|name| {
        let named = Template::ALL.into_iter().find(|template| template.name() == name);
        named.expect("the parser lets only names of templates pass")
    })
}

fn profiles() -> impl TypedValueParser<Value = Profile> {
    let value = |profile: Profile| PossibleValue::new(profile.name()).help(profile.summary());
    PossibleValuesParser::new(Profile::ALL.map(value)).map(|name| {
        let named = Profile::ALL.into_iter().find(|profile| profile.name() == name);
        named.expect("the parser lets only names of profiles pass")
    })
}

/// A load factor as whole percent.
fn parse_load(text: &str) -> Result<u32, LoadError> {
    match text.parse::<f64>() {
        Ok(factor) if (0.01..=10.0).contains(&factor) => Ok((factor * 100.0).round() as u32),
        _ => Err(LoadError),
    }
}

/// Epoch seconds.
fn parse_start(text: &str) -> Result<i64, TimeError> {
    Time::parse(text).map(|time| time.0.div_euclid(1000))
}

fn parse_namespace(text: &str) -> Result<String, NamespaceError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=63).contains(&text.len())
        && text.bytes().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if valid { Ok(text.to_owned()) } else { Err(NamespaceError) }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn parse(line: &str) -> Result<What, clap::Error> {
        let words = std::iter::once("generate").chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| cli.args.what)
    }

    fn workload(line: &str) -> Result<WorkloadSpec, Box<dyn Error>> {
        match parse(line)? {
            What::Workload(args) => Ok(workload_spec(&args)?),
            What::Cluster(_) => panic!("{line} is not a workload"),
        }
    }

    fn cluster(line: &str) -> Result<ClusterSpec, Box<dyn Error>> {
        match parse(line)? {
            What::Cluster(args) => Ok(cluster_spec(&args)?),
            What::Workload(_) => panic!("{line} is not a cluster"),
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_template() {
        let spec = cluster("cluster nvl72").expect("this is valid");
        assert_eq!((spec.nodes, spec.nodes_per_leaf, spec.leaves_per_spine), (128, 18, 16));
        assert_eq!((spec.seed, spec.start), (1, generate::DEFAULT_START));
        let spec = cluster("cluster").expect("this is valid");
        assert_eq!((spec.template, spec.nodes_per_leaf), (Template::Classic, 32));
    }

    #[test]
    fn a_load_replaces_the_count() {
        let amount = |line| workload(line).expect("this is valid").amount;
        assert_eq!(amount("workload"), Amount::Gangs(1000));
        assert_eq!(amount("workload llm --gangs 0"), Amount::Gangs(0));
        let load = amount("workload llm --load 0.95 --cluster-gpus 1024");
        assert_eq!(load, Amount::Load { percent: 95, gpus: 1024 });
    }

    #[test]
    fn mistakes_get_an_error_that_says_what_to_write() {
        let cases = [
            ("cluster --nodes 0", "1..=200000"),
            ("cluster classik", "classic"),
            ("cluster openb --gpus-per-node 4", "take classic or nvl72"),
            ("cluster --start yesterday", "write it like"),
            ("workload --load 95 --cluster-gpus 8", "0.95 for 95 %"),
            ("workload --load 0.9", "--cluster-gpus"),
            ("workload --load 0.9 --cluster-gpus 8 --gangs 4", "--gangs"),
            ("workload cpu --load 0.9 --cluster-gpus 8", "--gangs"),
            ("workload --namespace Team_A", "a-z"),
        ];
        for (line, hint) in cases {
            let error = if line.starts_with("cluster") {
                cluster(line).map(|_| ()).expect_err(line)
            } else {
                workload(line).map(|_| ()).expect_err(line)
            };
            assert!(error.to_string().contains(hint), "{line}: {error}");
        }
    }
}
