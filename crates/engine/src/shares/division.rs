//! Dividing an amount of one resource among sibling queues: first what each deserves, then the rest
//! by priority and weight, then the units that don't divide. Exact: whole units only, and every
//! unit goes to a queue that wants it.

use muster_api::Time;

use crate::base::ids::QueueId;
use crate::base::parts_per_million::PPM;

/// A queue as the division sees it.
#[derive(Copy, Clone, Debug)]
pub struct Party<'n> {
    pub queue: QueueId,
    pub name: &'n str,
    pub created: Time,
    pub deserved: i64,
    /// What it wants, up to its capability.
    pub wanted: i64,
    pub weight: i64,
    pub priority: i32,
    /// Its past usage relative to the whole cluster, in parts per million.
    pub usage_ppm: i64,
}

/// How one amount was divided, for `explain`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// What each queue got because it deserves it.
    pub in_quota: Vec<i64>,
    /// The rest, by priority from the highest down; only priorities with a queue that wanted more.
    pub tiers: Vec<Tier>,
    /// What no queue wanted or could get; negative by the amount that is deserved but does not
    /// exist.
    pub left: i64,
}

/// The queues of one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    pub priority: i32,
    pub rounds: Vec<Round>,
    /// The queues that got one of the units that do not divide.
    pub units: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub surplus: i64,
    /// The sum of all pulls.
    pub pull: i64,
    pub parts: Vec<Part>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The index of the queue among its siblings.
    pub place: usize,
    /// Its weight, raised or lowered by its past usage.
    pub pull: i64,
    /// Its part of the surplus, rounded down, and the remainder in parts of the sum of all pulls.
    pub share: i64,
    pub fraction: i64,
    pub got: i64,
}

/// The share of each party, in the order of the parties; otherwise their order makes no difference.
pub fn divide(
    total: i64,
    parties: &[Party],
    k_ppm: i64,
    mut steps: Option<&mut Steps>,
) -> Vec<i64> {
    let mut shares: Vec<i64> =
        parties.iter().map(|party| party.deserved.min(party.wanted).max(0)).collect();
    let given: i128 = shares.iter().map(|&share| i128::from(share)).sum();
    let mut surplus = i128::from(total) - given;
    if let Some(steps) = steps.as_deref_mut() {
        steps.in_quota.clone_from(&shares);
    }
    let mut hungry: Vec<usize> =
        (0..parties.len()).filter(|&at| shares[at] < parties[at].wanted).collect();
    hungry.sort_by_key(|&at| -i64::from(parties[at].priority));
    for tier in hungry.chunk_by(|&a, &b| parties[a].priority == parties[b].priority) {
        if surplus <= 0 {
            break;
        }
        let record = steps.as_deref_mut().map(|steps| {
            steps.tiers.push(Tier {
                priority: parties[tier[0]].priority,
                rounds: vec![],
                units: vec![],
            });
            steps.tiers.last_mut().expect("one was just put there")
        });
        surplus = i128::from(share_out(surplus as i64, tier, parties, k_ppm, &mut shares, record));
    }
    if let Some(steps) = steps {
        steps.left = i64::try_from(surplus).unwrap_or(i64::MIN);
    }
    shares
}

/// Divides a surplus among queues of one priority; returns what is left.
fn share_out(
    mut surplus: i64,
    tier: &[usize],
    parties: &[Party],
    k_ppm: i64,
    shares: &mut [i64],
    mut record: Option<&mut Tier>,
) -> i64 {
    let mut hungry = tier.to_vec();
    loop {
        let (parts, pull) = parts(surplus, &hungry, parties, k_ppm);
        if pull == 0 {
            return surplus;
        }
        let mut round = Round { surplus, pull, parts };
        // A queue that wants less than its part leaves more for the others.
        let mut again = false;
        for part in &mut round.parts {
            let lacks = parties[part.place].wanted - shares[part.place];
            again |= lacks < part.share || lacks == part.share && part.fraction > 0;
            part.got = part.share.min(lacks);
            shares[part.place] += part.got;
            surplus -= part.got;
        }
        hungry.retain(|&at| shares[at] < parties[at].wanted);
        let done = !again || hungry.is_empty() || surplus == 0;
        let units =
            if done { hand_out(&mut surplus, &round.parts, parties, shares) } else { Vec::new() };
        if let Some(record) = record.as_deref_mut() {
            record.rounds.push(round);
            record.units = units;
        }
        if done {
            return surplus;
        }
    }
}

/// The part of each hungry queue in a surplus, and the sum of all pulls.
fn parts(surplus: i64, hungry: &[usize], parties: &[Party], k_ppm: i64) -> (Vec<Part>, i64) {
    let pulls = pulls(hungry, parties, k_ppm);
    let sum: i64 = pulls.iter().sum();
    let part = |(&place, &pull): (&usize, &i64)| {
        let product = i128::from(surplus) * i128::from(pull);
        let (share, fraction) =
            (product / i128::from(sum.max(1)), product % i128::from(sum.max(1)));
        Part { place, pull, share: share as i64, fraction: fraction as i64, got: 0 }
    };
    (hungry.iter().zip(&pulls).map(part).collect(), sum)
}

/// The pull of each queue. With `w` its weight relative to all weights: `w + k × (w − usage)`, and
/// at least zero. All pulls are scaled by the same factor to whole numbers, as is their sum.
fn pulls(hungry: &[usize], parties: &[Party], k_ppm: i64) -> Vec<i64> {
    let weight = |at: usize| i128::from(parties[at].weight.max(0));
    let usage = |at: usize| i128::from(parties[at].usage_ppm.clamp(0, PPM));
    let (k, ppm) = (i128::from(k_ppm.max(0)), i128::from(PPM));
    if k == 0 || hungry.iter().all(|&at| usage(at) == 0) {
        return narrowed(hungry.iter().map(|&at| weight(at)).collect());
    }
    let weights: i128 = hungry.iter().map(|&at| weight(at)).sum();
    let pull = |&at: &usize| (weight(at) * (ppm + k) * ppm - k * usage(at) * weights).max(0);
    narrowed(hungry.iter().map(pull).collect())
}

/// The same proportions in smaller numbers, so that their sum times any amount does not overflow.
/// Only absurd weights lose precision.
fn narrowed(mut pulls: Vec<i128>) -> Vec<i64> {
    let divisor =
        pulls.iter().fold(0, |divisor, &pull| greatest_common_divisor(divisor, pull)).max(1);
    pulls.iter_mut().for_each(|pull| *pull /= divisor);
    while pulls.iter().sum::<i128>() > 1 << 62 {
        pulls.iter_mut().for_each(|pull| *pull /= 2);
    }
    pulls.into_iter().map(|pull| pull as i64).collect()
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Gives the units that do not divide one by one to the queues with the largest remainders, then to
/// the older queue. There are fewer such units than remainders, and a queue with a remainder wants
/// more.
fn hand_out(
    surplus: &mut i64,
    parts: &[Part],
    parties: &[Party],
    shares: &mut [i64],
) -> Vec<usize> {
    let wants = |part: &&Part| part.fraction > 0 && shares[part.place] < parties[part.place].wanted;
    let mut cut: Vec<&Part> = parts.iter().filter(wants).collect();
    let age = |part: &Part| (parties[part.place].created, parties[part.place].name);
    cut.sort_by(|a, b| b.fraction.cmp(&a.fraction).then_with(|| age(a).cmp(&age(b))));
    let units: Vec<usize> = cut.iter().map(|part| part.place).take(*surplus as usize).collect();
    for &place in &units {
        shares[place] += 1;
        *surplus -= 1;
    }
    units
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Older than the queues named after it, and without usage or priority.
    fn queue(name: &'static str, deserved: i64, weight: i64, wanted: i64) -> Party<'static> {
        let created = Time::default();
        Party {
            queue: QueueId(0),
            name,
            created,
            deserved,
            wanted,
            weight,
            priority: 0,
            usage_ppm: 0,
        }
    }

    fn used(party: Party<'static>, usage_ppm: i64) -> Party<'static> {
        Party { usage_ppm, ..party }
    }

    fn shares(total: i64, k_ppm: i64, parties: &[Party]) -> Vec<i64> {
        divide(total, parties, k_ppm, None)
    }

    #[test]
    fn what_is_deserved_comes_first_and_the_rest_goes_by_weight() {
        let parties = [queue("a", 10, 3, 100), queue("b", 10, 1, 100)];
        assert_eq!(shares(100, PPM, &parties), [70, 30]);
    }

    #[test]
    fn a_queue_that_used_more_than_its_weight_gets_less_of_the_rest() {
        let parties = [used(queue("a", 10, 3, 100), 500_000), queue("b", 10, 1, 100)];
        assert_eq!(shares(100, PPM, &parties), [63, 37]);
        assert_eq!(shares(100, PPM / 2, &parties), [66, 34]);
        assert_eq!(shares(100, 0, &parties), [70, 30]);
        let pair = |a, b| [used(queue("a", 0, 1, 16), a), used(queue("b", 0, 1, 16), b)];
        assert_eq!(shares(16, PPM, &pair(1_000_000, 0)), [0, 16]);
        assert_eq!(shares(16, PPM, &pair(600_000, 400_000)), [6, 10]);
    }

    #[test]
    fn the_rest_goes_to_high_priority_first() {
        let high = Party { priority: 200, ..queue("hi", 0, 1, 6) };
        let low = |party| Party { priority: 100, ..party };
        let parties = [high, low(queue("b", 2, 3, 9)), low(queue("c", 0, 1, 9))];
        assert_eq!(shares(10, PPM, &parties), [6, 4, 0]);
    }

    #[test]
    fn units_that_do_not_divide_stay_with_high_priority() {
        let high = ["a", "b", "c"].map(|name| Party { priority: 1, ..queue(name, 0, 1, 100) });
        let parties = [high[0], high[1], high[2], queue("low", 0, 1, 100)];
        assert_eq!(shares(10, 0, &parties), [4, 3, 3, 0]);
    }

    #[test]
    fn the_older_queue_gets_the_unit_that_does_not_divide() {
        let parties = [queue("a", 0, 1, 10), queue("b", 0, 1, 10), queue("c", 0, 1, 10)];
        assert_eq!(shares(10, PPM, &parties), [4, 3, 3]);
        let younger = Party { created: Time(1), ..parties[0] };
        assert_eq!(shares(10, PPM, &[younger, parties[1], parties[2]]), [3, 4, 3]);
    }

    #[test]
    fn more_may_be_deserved_than_there_is() {
        assert_eq!(
            shares(8, 0, &[queue("a", 6, 1, 8), queue("b", 6, 1, 8), queue("c", 0, 1, 8)]),
            [6, 6, 0]
        );
    }

    #[test]
    fn a_weight_of_nothing_gets_nothing_of_the_rest() {
        assert_eq!(shares(8, 0, &[queue("a", 1, 0, 8), queue("b", 1, -3, 8)]), [1, 1]);
        assert_eq!(shares(8, PPM, &[used(queue("a", 1, 0, 8), 100), queue("b", 1, 1, 8)]), [1, 7]);
    }

    #[test]
    fn absurd_numbers_are_divided_too() {
        let weight = i64::from(i32::MAX);
        let pair = [used(queue("a", 0, weight, i64::MAX), 1), queue("b", 0, weight - 1, i64::MAX)];
        let divided = shares(i64::MAX, 1000 * PPM, &pair);
        assert_eq!(i128::from(divided[0]) + i128::from(divided[1]), i128::from(i64::MAX));
    }

    #[test]
    fn every_step_is_recorded() {
        let parties = [queue("a", 2, 1, 3), queue("b", 0, 2, 9), queue("c", 0, 1, 9)];
        let mut steps = Steps::default();
        assert_eq!(divide(12, &parties, 0, Some(&mut steps)), [3, 6, 3]);
        assert_eq!((&steps.in_quota, steps.left), (&vec![2, 0, 0], 0));
        let [tier] = &steps.tiers[..] else { panic!("{steps:?}") };
        let got: Vec<Vec<(usize, i64)>> = tier
            .rounds
            .iter()
            .map(|round| round.parts.iter().map(|p| (p.place, p.got)).collect())
            .collect();
        assert_eq!(got, [vec![(0, 1), (1, 5), (2, 2)], vec![(1, 1), (2, 0)]]);
        assert_eq!((tier.rounds[1].surplus, tier.rounds[1].pull), (2, 3));
        assert_eq!(tier.units, [2], "two thirds of a unit were cut off, of the other one third");
    }

    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn party() -> impl Strategy<Value = Party<'static>> {
        (0..30i64, 0..60i64, 0..6i64, 0..3i32, 0..1_000_000i64).prop_map(
            |(deserved, wanted, weight, priority, usage)| {
                let usage_ppm = if usage < 500_000 { 0 } else { usage };
                Party { priority, usage_ppm, ..queue("", deserved, weight, wanted) }
            },
        )
    }

    fn parties() -> impl Strategy<Value = Vec<Party<'static>>> {
        let named = |(party, name): (Party<'static>, &'static str)| Party { name, ..party };
        prop::collection::vec(party(), 1..=NAMES.len())
            .prop_map(move |parties| parties.into_iter().zip(NAMES).map(named).collect())
    }

    /// One unit at a time to the highest priority, and there to the queue with the smallest surplus
    /// for its weight.
    fn divide_slowly(total: i64, parties: &[Party]) -> Vec<i64> {
        let quota: Vec<i64> =
            parties.iter().map(|party| party.deserved.min(party.wanted)).collect();
        let mut shares = quota.clone();
        for _ in shares.iter().sum()..total {
            let hungry = |&at: &usize| shares[at] < parties[at].wanted && parties[at].weight > 0;
            let next = (0..parties.len()).filter(hungry).min_by(|&a, &b| {
                let rest = |at: usize| shares[at] - quota[at] + 1;
                let priority = parties[b].priority.cmp(&parties[a].priority);
                priority
                    .then_with(|| (rest(a) * parties[b].weight).cmp(&(rest(b) * parties[a].weight)))
            });
            let Some(next) = next else { break };
            shares[next] += 1;
        }
        shares
    }

    proptest! {
        #[test]
        fn rounds_are_near_to_giving_one_unit_at_a_time(total in 0..200i64, parties in parties()) {
            let fast = shares(total, 0, &parties);
            let slow = divide_slowly(total, &parties);
            prop_assert_eq!(fast.iter().sum::<i64>(), slow.iter().sum::<i64>());
            for (at, party) in parties.iter().enumerate() {
                let level = |shares: &[i64]| {
                    let same = |&other: &usize| parties[other].priority == party.priority;
                    (0..parties.len()).filter(same).map(|other| shares[other]).sum::<i64>()
                };
                prop_assert_eq!(level(&fast), level(&slow), "priority {}", party.priority);
                let near = (fast[at] - slow[at]).abs() <= 2;
                prop_assert!(near, "{:?} against {:?} for {} among {:?}", fast, slow, total, parties);
            }
        }

        #[test]
        fn no_party_gets_more_than_it_wants_or_less_than_it_deserves(
            total in 0..200i64,
            k_ppm in 0..3 * PPM,
            parties in parties(),
        ) {
            let mut steps = Steps::default();
            let shares = divide(total, &parties, k_ppm, Some(&mut steps));
            for (share, party) in shares.iter().zip(&parties) {
                prop_assert!(*share <= party.wanted && *share >= party.deserved.min(party.wanted));
            }
            let quota: i64 = parties.iter().map(|party| party.deserved.min(party.wanted)).sum();
            let sum: i64 = shares.iter().sum();
            prop_assert!(sum <= total.max(quota));
            prop_assert_eq!(steps.left, total - sum, "the recorded steps are what was done");
            let lowest = parties.iter().zip(&shares).filter(|(p, share)| **share > p.deserved.min(p.wanted));
            if let Some(lowest) = lowest.map(|(party, _)| party.priority).min() {
                let left_out = |party: &Party, share: i64| {
                    party.priority > lowest && share < party.wanted && party.weight > 0 && party.usage_ppm == 0
                };
                let mut all = parties.iter().zip(&shares);
                prop_assert!(!all.any(|(party, share)| left_out(party, *share)), "{shares:?} of {total}");
            }
        }

        #[test]
        fn the_order_of_queues_makes_no_difference(
            total in 0..200i64,
            k_ppm in 0..3 * PPM,
            (parties, mixed) in parties().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        ) {
            let by_name = |parties: &[Party<'static>]| {
                let shares = divide(total, parties, k_ppm, None);
                let mut named: Vec<_> = parties.iter().map(|party| party.name).zip(shares).collect();
                named.sort_unstable();
                named
            };
            prop_assert_eq!(by_name(&parties), by_name(&mixed));
        }
    }
}
