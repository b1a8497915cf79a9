//! An order of bundles that clears room for one pod after the other, each on the node where the
//! bundles come first in the table and, among equal ones, where that loses least. It is estimated
//! from amounts only; nothing is evicted here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million::share;
use crate::model::Cluster;
use crate::policy::bundle::{Bundle, BundleKind};

/// A node to clear.
struct Site {
    node: NodeId,
    /// The free amounts of the resources that the shape requests, including what taken bundles
    /// free.
    free: Vec<i64>,
    /// The bundles with pods here, and what each frees here.
    tenants: Vec<(usize, Vec<i64>)>,
    /// How often a bundle here was taken: an older price in the queue is outdated.
    version: u32,
}

/// What it costs to clear room on a site: the last class of bundles by the table, then the loss.
type Price = (u32, i64);

struct Clearing<'c> {
    losses: &'c [i64],
    bundles: &'c [Bundle],
    taken: Vec<bool>,
    /// How many pods each gang can still lose one by one.
    spare: BTreeMap<GangId, usize>,
    sites: Vec<Site>,
    at_node: BTreeMap<NodeId, usize>,
    /// The sites of each bundle.
    places: Vec<Vec<usize>>,
    request: Vec<(ResourceId, i64)>,
}

/// Orders bundles so that taking them one by one clears room for these numbers of pods of each
/// shape, the largest shape first; the bundles that are not needed come last, in their old order. A
/// bundle is only taken whole. `losses` is what is lost with each bundle, `spare` how many pods
/// each gang can lose.
pub fn by_cheapest_room(
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
        clearing.assign(shape, i64::from(count), &mut placed);
        (taken, spare) = (clearing.taken, clearing.spare);
    }
    order.extend((0..bundles.len()).filter(|&at| !taken[at]));
    order
}

/// The bundles that clear room for one pod of a shape where least is lost.
pub fn for_one_pod(
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

    /// Counts pods of other shapes that are to be placed on a node.
    fn occupy(&mut self, cluster: &Cluster, node: NodeId, pods: &[(ShapeId, i64)]) {
        let Some(site) = self.at_node.get(&node).map(|&at| &mut self.sites[at]) else { return };
        for &(shape, count) in pods {
            let used: Vec<i64> =
                self.request.iter().map(|&(id, _)| cluster.request_of(shape, id)).collect();
            add(&mut site.free, &used, -count);
        }
    }

    /// How many pods of the shape fit.
    fn pods_that_fit(&self, free: &[i64]) -> i64 {
        let fits = |(&free, &(_, want)): (&i64, &(ResourceId, i64))| free.max(0) / want.max(1);
        free.iter().zip(&self.request).map(fits).min().unwrap_or(0)
    }

    /// The gang whose surplus a bundle reduces, if it does.
    fn surplus_of(&self, bundle: usize) -> Option<GangId> {
        let bundle = &self.bundles[bundle];
        (bundle.kind == BundleKind::Safe && !bundle.all_or_nothing && !bundle.broken)
            .then_some(bundle.gang)
    }

    /// The bundles to take from a site so that one more pod fits, and what that costs. Tries the
    /// first classes and the smallest losses first, and then the bundles that free most of the scarcest resource, if
    /// that loses less.
    fn price(&self, site: usize) -> Option<(Price, Vec<usize>)> {
        let mut tenants: Vec<&(usize, Vec<i64>)> =
            self.sites[site].tenants.iter().filter(|(bundle, _)| !self.taken[*bundle]).collect();
        tenants.sort_by_key(|(bundle, _)| {
            (self.bundles[*bundle].class, self.losses[*bundle], *bundle)
        });
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
    fn price_of(&self, site: usize, tenants: &[&(usize, Vec<i64>)]) -> Option<(Price, Vec<usize>)> {
        let site = &self.sites[site];
        let target = self.pods_that_fit(&site.free) + 1;
        let mut free = site.free.clone();
        let mut chosen: Vec<&(usize, Vec<i64>)> = Vec::new();
        for &tenant in tenants {
            if self.pods_that_fit(&free) >= target {
                break;
            }
            let of_gang = |gang: GangId| {
                chosen.iter().filter(|(bundle, _)| self.surplus_of(*bundle) == Some(gang)).count()
            };
            let enough =
                |gang: GangId| of_gang(gang) >= self.spare.get(&gang).copied().unwrap_or(0);
            if self.surplus_of(tenant.0).is_some_and(enough) {
                continue;
            }
            add(&mut free, &tenant.1, 1);
            chosen.push(tenant);
        }
        if self.pods_that_fit(&free) < target {
            return None;
        }
        for at in (0..chosen.len()).rev() {
            add(&mut free, &chosen[at].1, -1);
            if self.pods_that_fit(&free) >= target {
                chosen.remove(at);
            } else {
                add(&mut free, &chosen[at].1, 1);
            }
        }
        let chosen: Vec<usize> = chosen.into_iter().map(|(bundle, _)| *bundle).collect();
        let class = chosen.iter().map(|&bundle| self.bundles[bundle].class).max().unwrap_or(0);
        let loss = chosen.iter().map(|&bundle| self.losses[bundle]).sum();
        Some(((class, loss), chosen))
    }

    /// Takes bundles until there is room for `count` pods, at the cheapest site first.
    fn clear(&mut self, count: i64, order: &mut Vec<usize>) {
        let mut lacking =
            count - self.sites.iter().map(|site| self.pods_that_fit(&site.free)).sum::<i64>();
        let mut queue: BinaryHeap<Reverse<(Price, usize, u32)>> = BinaryHeap::new();
        let push = |clearing: &Clearing,
                    queue: &mut BinaryHeap<Reverse<(Price, usize, u32)>>,
                    site: usize| {
            if let Some((price, _)) = clearing.price(site) {
                queue.push(Reverse((price, site, clearing.sites[site].version)));
            }
        };
        if lacking > 0 {
            (0..self.sites.len()).for_each(|site| push(self, &mut queue, site));
        }
        while lacking > 0
            && let Some(Reverse((known, site, version))) = queue.pop()
        {
            if version != self.sites[site].version {
                continue;
            }
            let Some((price, chosen)) = self.price(site) else { continue };
            if price != known {
                queue.push(Reverse((price, site, version)));
                continue;
            }
            for bundle in chosen {
                self.taken[bundle] = true;
                order.push(bundle);
                if let Some(left) =
                    self.surplus_of(bundle).and_then(|gang| self.spare.get_mut(&gang))
                {
                    *left -= 1;
                }
                for at in self.places[bundle].clone() {
                    let before = self.pods_that_fit(&self.sites[at].free);
                    let freed = self.sites[at]
                        .tenants
                        .iter()
                        .find(|(of, _)| *of == bundle)
                        .map(|(_, freed)| freed.clone());
                    add(&mut self.sites[at].free, &freed.unwrap_or_default(), 1);
                    self.sites[at].version += 1;
                    lacking -= self.pods_that_fit(&self.sites[at].free) - before;
                    push(self, &mut queue, at);
                }
            }
        }
    }

    /// Assigns `count` pods to sites, so that the shapes that follow do not use their room.
    fn assign(
        &self,
        shape: ShapeId,
        mut count: i64,
        placed: &mut BTreeMap<NodeId, Vec<(ShapeId, i64)>>,
    ) {
        for site in &self.sites {
            let pods = self.pods_that_fit(&site.free).min(count);
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
