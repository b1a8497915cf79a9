//! Which bundles clear nodes for least: an order in which those go first that together free a place
//! for a pod, wherever that loses least. Reckoned with amounts only, nothing moves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million::share;
use crate::model::Cluster;
use crate::policy::bundle::{Bundle, BundleKind};

/// A node that is being cleared.
struct Site {
    node: NodeId,
    /// What it has free of each resource that pods of the shape ask for, without those that have
    /// been taken.
    free: Vec<i64>,
    /// Who could leave: the bundle that it goes with, and what it frees.
    tenants: Vec<(usize, Vec<i64>)>,
    /// How often its price has changed.
    version: u32,
}

struct Clearing<'c> {
    losses: &'c [i64],
    bundles: &'c [Bundle],
    taken: Vec<bool>,
    /// How many of a gang's pods may still go alone.
    spare: BTreeMap<GangId, usize>,
    sites: Vec<Site>,
    at_node: BTreeMap<NodeId, usize>,
    /// The sites of each bundle.
    places: Vec<Vec<usize>>,
    request: Vec<(ResourceId, i64)>,
}

/// Puts bundles, each of which goes as a whole, in the order in which they clear places for so many
/// pods of each shape, the largest first; then the rest as they were. `losses` is what is lost with
/// each, `spare` how many pods each gang can lose.
pub fn by_place(
    cluster: &Cluster,
    shapes: &[(ShapeId, u32)],
    nodes: &[NodeId],
    bundles: &[Bundle],
    losses: &[i64],
    mut spare: BTreeMap<GangId, usize>,
) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut placed: BTreeMap<NodeId, Vec<(ShapeId, i64)>> = BTreeMap::new();
    let mut taken = vec![false; bundles.len()];
    for &(shape, count) in shapes {
        let mut clearing = Clearing::new(cluster, shape, nodes, bundles, losses, (taken, spare));
        for (node, pods) in &placed {
            clearing.occupy(cluster, *node, pods);
        }
        clearing.clear(i64::from(count), &mut order);
        clearing.place(shape, i64::from(count), &mut placed);
        (taken, spare) = (clearing.taken, clearing.spare);
    }
    order.extend((0..bundles.len()).filter(|&at| !taken[at]));
    order
}

/// Those of the bundles that clear a place for one pod of a shape, where least is lost.
pub fn one_place(
    cluster: &Cluster,
    shape: ShapeId,
    nodes: &[NodeId],
    bundles: &[Bundle],
    losses: &[i64],
) -> Vec<usize> {
    let (taken, spare) = (vec![false; bundles.len()], BTreeMap::new());
    let mut order = Vec::new();
    Clearing::new(cluster, shape, nodes, bundles, losses, (taken, spare)).clear(1, &mut order);
    order
}

impl<'c> Clearing<'c> {
    fn new(
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        bundles: &'c [Bundle],
        losses: &'c [i64],
        (taken, spare): (Vec<bool>, BTreeMap<GangId, usize>),
    ) -> Clearing<'c> {
        let request: Vec<(ResourceId, i64)> = cluster.shapes[shape].request.iter().collect();
        let has = |pod: PodId| -> Vec<i64> {
            request.iter().map(|&(id, _)| cluster.request_of(cluster.pods.shape[pod], id)).collect()
        };
        let mut at_node: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut sites: Vec<Site> = Vec::with_capacity(nodes.len());
        for &node in nodes {
            at_node.insert(node, sites.len());
            let free = request.iter().map(|&(id, _)| cluster.nodes.future_idle(id, node)).collect();
            sites.push(Site { node, free, tenants: Vec::new(), version: 0 });
        }
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); bundles.len()];
        for (at, bundle) in bundles.iter().enumerate() {
            for &pod in &bundle.pods {
                let Some(&site) =
                    cluster.pods.state[pod].node().and_then(|node| at_node.get(&node))
                else {
                    continue;
                };
                let freed = has(pod);
                match sites[site].tenants.last_mut() {
                    Some((known, sum)) if *known == at => {
                        sum.iter_mut().zip(&freed).for_each(|(sum, freed)| *sum += freed)
                    }
                    _ => sites[site].tenants.push((at, freed)),
                }
                places[at].push(site);
            }
            places[at].sort_unstable();
            places[at].dedup();
        }
        let mut clearing =
            Clearing { losses, bundles, taken, spare, sites, at_node, places, request };
        for site in 0..clearing.sites.len() {
            for at in 0..clearing.sites[site].tenants.len() {
                let (bundle, freed) = clearing.sites[site].tenants[at].clone();
                if clearing.taken[bundle] {
                    add(&mut clearing.sites[site].free, &freed, 1);
                }
            }
        }
        clearing
    }

    /// Pods of other shapes have places there.
    fn occupy(&mut self, cluster: &Cluster, node: NodeId, pods: &[(ShapeId, i64)]) {
        let Some(site) = self.at_node.get(&node).map(|&at| &mut self.sites[at]) else { return };
        for &(shape, count) in pods {
            let used: Vec<i64> =
                self.request.iter().map(|&(id, _)| cluster.request_of(shape, id)).collect();
            add(&mut site.free, &used, -count);
        }
    }

    /// How many pods fit.
    fn holds(&self, free: &[i64]) -> i64 {
        let fits = |(&free, &(_, want)): (&i64, &(ResourceId, i64))| free.max(0) / want.max(1);
        free.iter().zip(&self.request).map(fits).min().unwrap_or(0)
    }

    /// The gang that loses one of those that it can spare with a bundle.
    fn spares(&self, bundle: usize) -> Option<GangId> {
        let bundle = &self.bundles[bundle];
        (bundle.kind == BundleKind::Safe && !bundle.all_or_nothing && !bundle.broken)
            .then_some(bundle.gang)
    }

    /// Who has to leave a site so that one more pod fits, and what is lost with them: those with
    /// whom least is lost first, or those who free most, if that is less.
    fn price(&self, site: usize) -> Option<(i64, Vec<usize>)> {
        let mut tenants: Vec<&(usize, Vec<i64>)> =
            self.sites[site].tenants.iter().filter(|(bundle, _)| !self.taken[*bundle]).collect();
        tenants.sort_by_key(|(bundle, _)| (self.losses[*bundle], *bundle));
        let cheapest = self.price_of(site, &tenants)?;
        if cheapest.1.len() < 2 {
            return Some(cheapest);
        }
        let lack =
            |at: usize| share(self.request[at].1 - self.sites[site].free[at], self.request[at].1);
        let Some(scarce) =
            (0..self.request.len()).filter(|&at| lack(at) > 0).max_by_key(|&at| lack(at))
        else {
            return Some(cheapest);
        };
        tenants.sort_by_key(|(_, freed)| Reverse(freed[scarce]));
        let largest = self.price_of(site, &tenants);
        Some(largest.filter(|largest| largest.0 < cheapest.0).unwrap_or(cheapest))
    }

    /// The same, with the tenants in this order.
    fn price_of(&self, site: usize, tenants: &[&(usize, Vec<i64>)]) -> Option<(i64, Vec<usize>)> {
        let site = &self.sites[site];
        let more = self.holds(&site.free) + 1;
        let mut free = site.free.clone();
        let mut gone: Vec<&(usize, Vec<i64>)> = Vec::new();
        for &tenant in tenants {
            if self.holds(&free) >= more {
                break;
            }
            let of_gang = |gang: GangId| {
                gone.iter().filter(|(bundle, _)| self.spares(*bundle) == Some(gang)).count()
            };
            let enough =
                |gang: GangId| of_gang(gang) >= self.spare.get(&gang).copied().unwrap_or(0);
            if self.spares(tenant.0).is_some_and(enough) {
                continue;
            }
            add(&mut free, &tenant.1, 1);
            gone.push(tenant);
        }
        if self.holds(&free) < more {
            return None;
        }
        for at in (0..gone.len()).rev() {
            add(&mut free, &gone[at].1, -1);
            if self.holds(&free) >= more {
                gone.remove(at);
            } else {
                add(&mut free, &gone[at].1, 1);
            }
        }
        let gone: Vec<usize> = gone.into_iter().map(|(bundle, _)| *bundle).collect();
        Some((gone.iter().map(|&bundle| self.losses[bundle]).sum(), gone))
    }

    /// Takes bundles until so many pods have places, the cheapest place first.
    fn clear(&mut self, count: i64, order: &mut Vec<usize>) {
        let mut lacking = count - self.sites.iter().map(|site| self.holds(&site.free)).sum::<i64>();
        let mut line: BinaryHeap<Reverse<(i64, usize, u32)>> = BinaryHeap::new();
        let enter = |clearing: &Clearing,
                     line: &mut BinaryHeap<Reverse<(i64, usize, u32)>>,
                     site: usize| {
            if let Some((price, _)) = clearing.price(site) {
                line.push(Reverse((price, site, clearing.sites[site].version)));
            }
        };
        if lacking > 0 {
            (0..self.sites.len()).for_each(|site| enter(self, &mut line, site));
        }
        while lacking > 0
            && let Some(Reverse((known, site, version))) = line.pop()
        {
            if version != self.sites[site].version {
                continue;
            }
            let Some((price, gone)) = self.price(site) else { continue };
            if price != known {
                line.push(Reverse((price, site, version)));
                continue;
            }
            for bundle in gone {
                self.taken[bundle] = true;
                order.push(bundle);
                if let Some(left) = self.spares(bundle).and_then(|gang| self.spare.get_mut(&gang)) {
                    *left -= 1;
                }
                for at in self.places[bundle].clone() {
                    let before = self.holds(&self.sites[at].free);
                    let freed = self.sites[at]
                        .tenants
                        .iter()
                        .find(|(of, _)| *of == bundle)
                        .map(|(_, freed)| freed.clone());
                    add(&mut self.sites[at].free, &freed.unwrap_or_default(), 1);
                    self.sites[at].version += 1;
                    lacking -= self.holds(&self.sites[at].free) - before;
                    enter(self, &mut line, at);
                }
            }
        }
    }

    /// Where so many pods would be, for those that come after them.
    fn place(
        &self,
        shape: ShapeId,
        mut count: i64,
        placed: &mut BTreeMap<NodeId, Vec<(ShapeId, i64)>>,
    ) {
        for site in &self.sites {
            let pods = self.holds(&site.free).min(count);
            if pods > 0 {
                placed.entry(site.node).or_default().push((shape, pods));
                count -= pods;
            }
        }
    }
}

fn add(sum: &mut [i64], amounts: &[i64], times: i64) {
    sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += times * amount);
}
