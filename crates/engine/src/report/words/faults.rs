//! Why a HyperNode is not in the tree, as text.

use crate::model::topology::domains::Fault;

/// Why a HyperNode is not in the tree, in one CamelCase word.
pub fn fault_word(fault: &Fault) -> &'static str {
    match fault {
        Fault::BadMember { .. } => "MemberInvalid",
        Fault::TierName { .. } => "TierNameAmbiguous",
        Fault::Cycle { .. } => "MemberOfItself",
        Fault::SharedChild { .. } => "HyperNodeClaimedTwice",
        Fault::NotBelow { .. } => "TierNotBelowParent",
        Fault::SharedNode { .. } => "NodeClaimedTwice",
        Fault::Above { .. } => "ParentNotInTree",
    }
}

/// Why a HyperNode is not in the tree, in a sentence that continues after its name and says what to
/// change.
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::BadMember { why } => format!("a member can't be understood: {why}"),
        Fault::TierName { name, tier, other, other_tier } => format!(
            "its tier {tier} is named {name}, as tier {other_tier} is in {other}: give each tier a name of its own"
        ),
        Fault::Cycle { through } => {
            let steps: Vec<&str> =
                through.iter().chain(through.first()).map(AsRef::as_ref).collect();
            format!("it is below itself ({}): remove one of these members", steps.join(" > "))
        }
        Fault::SharedChild { child, with } => {
            format!("its member {child} is in {with} already: remove it from one of the two")
        }
        Fault::NotBelow { tier, parent, parent_tier } => format!(
            "it is of tier {tier} below {parent} of tier {parent_tier}: give it a lower tier, or {parent} a higher one"
        ),
        Fault::SharedNode { node, with } => {
            format!("its node {node} is in {with} already: remove it from one of the two")
        }
        Fault::Above { parent } => {
            format!("{parent} above it is not in the tree: correct that one")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_tree_says_what_to_change() {
        let faults = [
            Fault::BadMember { why: "missing argument to repetition operator at byte 0".into() },
            Fault::TierName { name: "rack".into(), tier: 2, other: "s0".into(), other_tier: 1 },
            Fault::Cycle { through: vec!["s4".into(), "s5".into()] },
            Fault::SharedChild { child: "s1".into(), with: "s4".into() },
            Fault::NotBelow { tier: 2, parent: "s4".into(), parent_tier: 2 },
            Fault::SharedNode { node: "node2".into(), with: "s1".into() },
            Fault::Above { parent: "s6".into() },
        ];
        assert_eq!(
            faults.each_ref().map(fault),
            [
                "a member can't be understood: missing argument to repetition operator at byte 0",
                "its tier 2 is named rack, as tier 1 is in s0: give each tier a name of its own",
                "it is below itself (s4 > s5 > s4): remove one of these members",
                "its member s1 is in s4 already: remove it from one of the two",
                "it is of tier 2 below s4 of tier 2: give it a lower tier, or s4 a higher one",
                "its node node2 is in s1 already: remove it from one of the two",
                "s6 above it is not in the tree: correct that one",
            ]
        );
    }
}
