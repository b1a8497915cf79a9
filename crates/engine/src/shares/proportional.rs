//! Dividing an amount fairly: each party gets in proportion to its weight, none more than it can
//! use, none less than is guaranteed.

/// One that takes part in the division.
#[derive(Copy, Clone, Debug)]
pub struct Party {
    pub weight: i64,
    pub least: i64,
    pub most: i64,
}

/// Divides `total` by water-filling: there is a level at which each has `weight × level`,
/// except those that `most` or `least` holds below or above it. Units that don't divide go one by
/// one to those in the list that can use one, the first first. Guarantees are given even where they
/// exceed the total.
pub fn divide(total: i64, parties: &[Party]) -> Vec<i64> {
    let mut shares: Vec<Option<i64>> = vec![None; parties.len()];
    loop {
        let fixed: i128 = shares.iter().flatten().map(|&share| i128::from(share)).sum();
        let open: Vec<usize> =
            (0..parties.len()).filter(|&index| shares[index].is_none()).collect();
        let left = (i128::from(total) - fixed).max(0);
        let weights: i128 = open.iter().map(|&index| i128::from(parties[index].weight)).sum();
        let level = |index: usize| left * i128::from(parties[index].weight) / weights.max(1);
        // What the bounds add and take away decides on which side the level lies.
        let (mut above, mut below) = (0, 0);
        for &index in &open {
            above +=
                (level(index) - i128::from(parties[index].most.max(parties[index].least))).max(0);
            below += (i128::from(parties[index].least) - level(index)).max(0);
        }
        if above == 0 && below == 0 {
            for &index in &open {
                shares[index] = Some(level(index) as i64);
            }
            return hand_out(total, parties, shares.into_iter().flatten().collect());
        }
        for &index in &open {
            let Party { least, most, .. } = parties[index];
            let most = most.max(least);
            if above >= below && level(index) > i128::from(most) {
                shares[index] = Some(most);
            } else if above <= below && level(index) < i128::from(least) {
                shares[index] = Some(least);
            }
        }
    }
}

fn hand_out(total: i64, parties: &[Party], mut shares: Vec<i64>) -> Vec<i64> {
    let mut left = i128::from(total) - shares.iter().map(|&share| i128::from(share)).sum::<i128>();
    let mut given = true;
    // Fewer may be able to use one than there are units left, so there may be more rounds than one.
    while left > 0 && std::mem::take(&mut given) {
        for (share, party) in shares.iter_mut().zip(parties) {
            if left > 0 && *share < party.most {
                *share += 1;
                left -= 1;
                given = true;
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One unit at a time to the party with the least for its weight: slow and obviously fair.
    fn divide_slowly(total: i64, parties: &[Party]) -> Vec<i64> {
        let mut shares: Vec<i64> = parties.iter().map(|party| party.least).collect();
        let mut left = total - shares.iter().sum::<i64>();
        while left > 0 {
            let hungry = (0..parties.len()).filter(|&index| shares[index] < parties[index].most);
            let Some(next) = hungry.min_by(|&a, &b| {
                let (a, b) =
                    ((shares[a] + 1) * parties[b].weight, (shares[b] + 1) * parties[a].weight);
                a.cmp(&b)
            }) else {
                break;
            };
            shares[next] += 1;
            left -= 1;
        }
        shares
    }

    fn party() -> impl Strategy<Value = Party> {
        (1..6i64, 0..20i64, 0..60i64).prop_map(|(weight, least, most)| Party {
            weight,
            least,
            most: most.max(least),
        })
    }

    #[test]
    fn units_that_do_not_divide_are_given_even_if_few_can_use_them() {
        let party = |weight, least, most| Party { weight, least, most };
        let full = [party(1, 16, 16), party(5, 19, 19), party(1, 16, 18)];
        let parties: Vec<Party> =
            [party(1, 0, 3)].into_iter().chain(full).chain([party(3, 0, 7)]).collect();
        assert_eq!(divide(64, &parties).iter().sum::<i64>(), 63);
    }

    proptest! {
        #[test]
        fn water_filling_is_within_a_unit_of_giving_one_at_a_time(
            total in 0..200i64,
            parties in prop::collection::vec(party(), 1..7),
        ) {
            let fast = divide(total, &parties);
            let slow = divide_slowly(total, &parties);
            for (index, party) in parties.iter().enumerate() {
                prop_assert!(fast[index] >= party.least && fast[index] <= party.most, "{fast:?} {parties:?}");
                let near = (fast[index] - slow[index]).abs() <= parties.len() as i64;
                prop_assert!(near, "{fast:?} against {slow:?} for {total} among {parties:?}");
            }
            let guaranteed: i64 = parties.iter().map(|party| party.least).sum();
            let usable: i64 = parties.iter().map(|party| party.most).sum();
            prop_assert_eq!(fast.iter().sum::<i64>(), total.clamp(guaranteed, usable.max(guaranteed)));
        }
    }
}
