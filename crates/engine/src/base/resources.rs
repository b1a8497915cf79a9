//! Amounts of room as integers: cpu in milli-units, everything else in units or bytes.

use std::cmp::Ordering;
use std::sync::Arc;

use muster_api::{Quantity, ResourceList};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{ResourceId, Table};

/// Every pod takes one of these, so that the pod count of a node is a resource like any other.
pub const PODS: ResourceId = ResourceId(0);
pub const CPU: ResourceId = ResourceId(1);
pub const MEMORY: ResourceId = ResourceId(2);
pub const EPHEMERAL: ResourceId = ResourceId(3);

/// 32 PiB: more than any node has of anything.
const MOST: i64 = 1 << 55;

/// The dimensions that this cluster has, interned as they are first seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dimensions {
    ids: FxHashMap<Arc<str>, ResourceId>,
    names: Table<ResourceId, Arc<str>>,
}

impl Default for Dimensions {
    fn default() -> Self {
        let mut new = Dimensions { ids: FxHashMap::default(), names: Table::default() };
        for name in ["pods", "cpu", "memory", "ephemeral-storage"] {
            new.intern(name);
        }
        new
    }
}

impl Dimensions {
    pub fn intern(&mut self, name: &str) -> ResourceId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let name: Arc<str> = name.into();
        let id = self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    pub fn find(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    pub fn name(&self, id: ResourceId) -> &str {
        &self.names[id]
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Absurd amounts are held at [`MOST`], so that sums of many stay exact.
    pub fn amount(&self, id: ResourceId, quantity: Quantity) -> i64 {
        if id == CPU { quantity.milli_value() } else { quantity.value() }.min(MOST)
    }

    /// The amount as people write it: "500m", "16Gi", "8".
    pub fn show(&self, id: ResourceId, amount: i64) -> String {
        if id == CPU {
            return Quantity::from_milli(amount).to_string();
        }
        if self.counts_bytes(id) {
            return show_bytes(amount);
        }
        amount.to_string()
    }

    pub fn counts_bytes(&self, id: ResourceId) -> bool {
        id == MEMORY || id == EPHEMERAL || self.name(id).starts_with("hugepages-")
    }

    /// The order in which a missing resource is named: scarce extended ones first, whatever the
    /// order of arrival.
    pub fn by_scarcity(&self, a: ResourceId, b: ResourceId) -> Ordering {
        let place = |id: ResourceId| match id {
            CPU => 1,
            MEMORY => 2,
            EPHEMERAL => 3,
            PODS => 4,
            _ => 0,
        };
        place(a).cmp(&place(b)).then_with(|| self.name(a).cmp(self.name(b)))
    }

    /// A list as sparse amounts, by scarcity; zero amounts are left out unless `keep_zero`.
    pub fn sparse(&mut self, list: &ResourceList, keep_zero: bool) -> Sparse {
        let mut amounts: Vec<(ResourceId, i64)> = list
            .iter()
            .map(|(name, &quantity)| {
                let id = self.intern(name);
                (id, self.amount(id, quantity).max(0))
            })
            .filter(|&(_, amount)| keep_zero || amount > 0)
            .collect();
        amounts.sort_by(|a, b| self.by_scarcity(a.0, b.0));
        Sparse(amounts.into())
    }
}

/// Bytes in the largest binary unit that keeps three digits of meaning.
fn show_bytes(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut shown = bytes.to_string();
    let mut size: i128 = 1;
    for unit in UNITS {
        size *= 1024;
        let magnitude = i128::from(bytes).abs();
        if magnitude < size {
            break;
        }
        let tenths = (magnitude * 10 + size / 2) / size;
        let sign = if bytes < 0 { "-" } else { "" };
        shown = if tenths % 10 == 0 || tenths >= 1000 {
            format!("{sign}{}{unit}", (tenths + if tenths >= 1000 { 5 } else { 0 }) / 10)
        } else {
            format!("{sign}{}.{}{unit}", tenths / 10, tenths % 10)
        };
    }
    shown
}

/// The few dimensions that something names, each with its amount, scarce ones first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sparse(pub Box<[(ResourceId, i64)]>);

impl Sparse {
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> + Clone + '_ {
        self.0.iter().copied()
    }

    pub fn get(&self, resource: ResourceId) -> Option<i64> {
        self.iter().find(|&(id, _)| id == resource).map(|(_, amount)| amount)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A dense vector over all dimensions; what is beyond its end is zero.
#[derive(Clone, Debug, Default, Eq, Serialize, Deserialize)]
pub struct Amounts(Vec<i64>);

/// Vectors of different length are equal when the longer one ends in zeros.
impl PartialEq for Amounts {
    fn eq(&self, other: &Self) -> bool {
        (0..self.0.len().max(other.0.len()))
            .map(ResourceId::from)
            .all(|id| self.get(id) == other.get(id))
    }
}

impl Amounts {
    #[inline]
    pub fn get(&self, resource: ResourceId) -> i64 {
        self.0.get(usize::from(resource)).copied().unwrap_or(0)
    }

    #[inline]
    pub fn add(&mut self, resource: ResourceId, amount: i64) {
        match self.0.get_mut(usize::from(resource)) {
            Some(known) => *known += amount,
            None => self.grow(resource, amount),
        }
    }

    #[cold]
    fn grow(&mut self, resource: ResourceId, amount: i64) {
        self.0.resize(usize::from(resource) + 1, 0);
        self.0[usize::from(resource)] = amount;
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    #[inline]
    pub fn add_all(&mut self, amounts: &Sparse, sign: i64) {
        for (resource, amount) in amounts.iter() {
            self.add(resource, amount * sign);
        }
    }

    /// The same for a sum that can't be negative. False if it would have been: then it is held at
    /// zero.
    #[inline]
    #[must_use]
    pub fn shift(&mut self, amounts: &Sparse, sign: i64) -> bool {
        let mut sound = true;
        for (resource, amount) in amounts.iter() {
            self.add(resource, amount * sign);
            if self.get(resource) < 0 {
                self.0[usize::from(resource)] = 0;
                sound = false;
            }
        }
        sound
    }

    pub fn add_amounts(&mut self, other: &Amounts, sign: i64) {
        for (resource, amount) in other.iter() {
            self.add(resource, amount * sign);
        }
    }

    /// The dimensions that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, amount)| **amount != 0)
            .map(|(index, &amount)| (ResourceId::from(index), amount))
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&amount| amount == 0)
    }
}

/// A fraction of the cluster or of a quota. Compared by cross-multiplication, never divided.
#[derive(Copy, Clone, Debug)]
pub struct Share {
    pub part: i64,
    pub whole: i64,
}

impl Share {
    pub const ZERO: Share = Share { part: 0, whole: 1 };
    pub const ONE: Share = Share { part: 1, whole: 1 };

    /// A part of nothing is the largest share there is, unless the part is nothing too.
    pub fn of(part: i64, whole: i64) -> Share {
        match (part, whole) {
            (part, _) if part <= 0 => Share::ZERO,
            (_, whole) if whole <= 0 => Share { part: i64::MAX, whole: 1 },
            (part, whole) => Share { part, whole },
        }
    }

    /// The largest share over the dimensions of `parts` (pods do not count: all queues have some).
    pub fn dominant(parts: &Amounts, whole: impl Fn(ResourceId) -> i64) -> Share {
        let mut largest = Share::ZERO;
        for (resource, part) in parts.iter() {
            if resource != PODS {
                largest = largest.max(Share::of(part, whole(resource)));
            }
        }
        largest
    }

    /// Parts per million, rounded down; for people, not for decisions.
    pub fn ppm(self) -> i64 {
        (i128::from(self.part) * 1_000_000 / i128::from(self.whole.max(1)))
            .min(i128::from(i64::MAX)) as i64
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        (i128::from(self.part) * i128::from(other.whole))
            .cmp(&(i128::from(other.part) * i128::from(self.whole)))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_with_one_decimal() {
        let shown: Vec<String> =
            [512, 1024, 1536, 16 << 30, (1 << 40) - 1, 1_500_000_000_000].map(show_bytes).into();
        assert_eq!(shown, ["512", "1Ki", "1.5Ki", "16Gi", "1024Gi", "1.4Ti"]);
    }

    #[test]
    fn a_sum_that_would_go_below_zero_is_held_there_and_says_so() {
        let request = Sparse([(PODS, 1), (CPU, 3)].into());
        let mut sum = Amounts::default();
        assert!(sum.shift(&request, 1));
        assert!(sum.shift(&request, -1));
        assert!(!sum.shift(&request, -1));
        assert!(sum.is_zero());
    }

    #[test]
    fn shares_compare_without_dividing() {
        assert!(Share::of(1, 3) < Share::of(334, 1000));
        assert_eq!(Share::of(2, 6), Share::of(1, 3));
        assert!(Share::of(1, 0) > Share::of(i64::MAX, 2));
        assert_eq!(Share::of(0, 0), Share::ZERO);
    }
}
