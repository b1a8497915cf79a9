//! The shares of queues as data, with every step that led to them.

use std::cmp::Ordering;

use muster_engine::Engine;
use muster_engine::ids::{QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::queues::ROOT;
use muster_engine::shares::{self, Division, PPM, Portion, Round, Tier};
use serde::Serialize;

/// Everything about the shares of some resources. Amounts are whole numbers: cpu in thousandths,
/// memory in bytes.
#[derive(Serialize)]
pub struct FairShares {
    /// Whether children divide the share of their parent; otherwise all queues divide the cluster.
    pub tree: bool,
    pub resources: Vec<ResourceShares>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceShares {
    pub resource: String,
    /// What is divided.
    pub total: i64,
    /// What ready nodes have, and how much of it pods of other schedulers use.
    pub allocatable: i64,
    pub used_by_others: i64,
    /// Parents before their children, siblings by name.
    pub queues: Vec<QueueShare>,
    pub divisions: Vec<DivisionSteps>,
    #[serde(skip)]
    pub id: ResourceId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueShare {
    pub name: String,
    pub parent: Option<String>,
    pub depth: usize,
    pub priority: i32,
    pub weight: i32,
    /// What the queue deserves, or its guarantee if that is more.
    pub deserved: i64,
    pub capability: Option<i64>,
    /// What its gangs use, nominations included.
    pub used: i64,
    /// What they use and what their pending pods request.
    pub wanted: i64,
    /// How much of the cluster it used in the past, in parts per million; 0 if that isn't
    /// remembered.
    pub usage_ppm: i64,
    pub fair_share: i64,
    pub standing: Standing,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// It has more than its share.
    Over,
    /// It has its share, or wants no more.
    Within,
    /// It has less than its share, and wants more.
    Below,
}

/// How siblings divide the share of their parent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DivisionSteps {
    pub parent: String,
    pub total: i64,
    /// Every queue gets what it wants.
    pub enough: bool,
    /// What queues get because they deserve it.
    pub in_quota: Vec<Given>,
    pub surplus: Vec<SurplusRound>,
    /// What no queue wants; negative if more is deserved than there is, by that much.
    pub left: i64,
}

#[derive(Serialize)]
pub struct Given {
    pub queue: String,
    pub amount: i64,
}

/// The surplus is divided by weight among queues of the same priority that want more.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurplusRound {
    pub priority: i32,
    pub round: usize,
    pub surplus: i64,
    /// The sum of all weights.
    pub weights: i64,
    pub parts: Vec<SurplusPart>,
    /// The queues that get one of the indivisible units that remain: those that lost most by
    /// rounding, of equal ones the older.
    pub units: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurplusPart {
    pub queue: String,
    pub weight: i64,
    /// Its part by weight, rounded down.
    pub share: i64,
    /// How much of the part it takes: no more than it wants.
    pub got: i64,
}

pub fn fair_shares(engine: &Engine, resources: &[ResourceId]) -> FairShares {
    let (cluster, rules) = (engine.cluster(), engine.policy().fairness());
    let (tree, k_ppm) = rules.map_or((false, PPM), |rules| (rules.tree, rules.k_ppm));
    let resource = |&id: &ResourceId| {
        let divisions = shares::trace(cluster, tree, k_ppm, id);
        ResourceShares {
            resource: cluster.dimensions.name(id).to_owned(),
            total: shares::total(cluster, id),
            allocatable: cluster.total.get(id),
            used_by_others: cluster.foreign.get(id),
            queues: queue_shares(cluster, tree, id, &divisions),
            divisions: divisions.iter().map(|division| steps(cluster, division)).collect(),
            id,
        }
    };
    FairShares { tree, resources: resources.iter().map(resource).collect() }
}

/// All queues that get a share, each followed by the queues below it.
fn queue_shares(
    cluster: &Cluster,
    tree: bool,
    resource: ResourceId,
    divisions: &[Division],
) -> Vec<QueueShare> {
    let below = |parent: QueueId| {
        let portions = divisions.iter().filter(move |division| division.parent == parent);
        portions.flat_map(|division| division.portions.iter().rev())
    };
    let mut shown = Vec::new();
    let mut stack: Vec<(usize, &Portion)> = below(ROOT).map(|portion| (0, portion)).collect();
    while let Some((depth, portion)) = stack.pop() {
        shown.push(queue_share(cluster, tree, resource, portion, depth));
        stack.extend(below(portion.queue).map(|portion| (depth + 1, portion)));
    }
    shown
}

fn queue_share(
    cluster: &Cluster,
    tree: bool,
    resource: ResourceId,
    portion: &Portion,
    depth: usize,
) -> QueueShare {
    let queue = &cluster.queues[portion.queue];
    let parent = queue.lineage.get(1).filter(|&&parent| tree && parent != ROOT);
    // Sums go up the tree, whether shares follow it or not.
    let children =
        cluster.queues.iter().filter(|(_, child)| child.lineage.get(1) == Some(&portion.queue));
    let of_others: i64 =
        if tree { 0 } else { children.map(|(_, child)| child.taken(resource)).sum() };
    let used = queue.taken(resource) - of_others;
    QueueShare {
        name: queue.name.to_string(),
        parent: parent.map(|&parent| cluster.queues[parent].name.to_string()),
        depth,
        priority: queue.priority,
        weight: queue.weight,
        deserved: portion.deserved,
        capability: Some(portion.capability).filter(|&most| most < i64::MAX),
        used,
        wanted: portion.requested,
        usage_ppm: portion.usage_ppm,
        fair_share: portion.fair,
        standing: match used.cmp(&portion.fair) {
            Ordering::Greater => Standing::Over,
            Ordering::Equal => Standing::Within,
            Ordering::Less => Standing::Below,
        },
    }
}

fn steps(cluster: &Cluster, division: &Division) -> DivisionSteps {
    let name = |place: usize| cluster.queues[division.portions[place].queue].name.to_string();
    let given = |(place, &amount): (usize, &i64)| Given { queue: name(place), amount };
    let round = |tier: &Tier, (at, round): (usize, &Round)| SurplusRound {
        priority: tier.priority,
        round: at + 1,
        surplus: round.surplus,
        weights: round.pull,
        parts: round
            .parts
            .iter()
            .map(|part| SurplusPart {
                queue: name(part.place),
                weight: part.pull,
                share: part.share,
                got: part.got,
            })
            .collect(),
        units: match at + 1 == tier.rounds.len() {
            true => tier.units.iter().map(|&place| name(place)).collect(),
            false => Vec::new(),
        },
    };
    let rounds = |tier: &Tier| -> Vec<SurplusRound> {
        tier.rounds.iter().enumerate().map(|numbered| round(tier, numbered)).collect()
    };
    DivisionSteps {
        parent: cluster.queues[division.parent].name.to_string(),
        total: division.total,
        enough: division.portions.iter().all(|portion| portion.fair == portion.requested),
        in_quota: division
            .steps
            .in_quota
            .iter()
            .enumerate()
            .map(given)
            .filter(|g| g.amount > 0)
            .collect(),
        surplus: division.steps.tiers.iter().flat_map(rounds).collect(),
        left: division.steps.left,
    }
}
