//! Why pods fit on no node, as text.

use muster_text::grouped;

use crate::base::cards::{ALL_CORES, Ask, Memory};
use crate::base::resources::Dimensions;
use crate::decision::node_reason::{Histogram, Shown, Why};

/// "0/5,000 nodes fit: 3,200 short of nvidia.com/gpu (want 8, best has 6), 1,800 tainted (infra)".
pub fn histogram_text(histogram: &Histogram, dimensions: &Dimensions) -> String {
    if histogram.nodes == 0 {
        return "the cluster has no nodes".to_owned();
    }
    let bars: Vec<String> = histogram
        .bars
        .iter()
        .map(|bar| {
            format!("{} {}", grouped(u64::from(bar.nodes)), shown_text(&bar.why, dimensions))
        })
        .collect();
    let fit = format!(
        "{}/{} nodes fit",
        grouped(u64::from(histogram.fit)),
        grouped(u64::from(histogram.nodes))
    );
    if bars.is_empty() { fit } else { format!("{fit}: {}", bars.join(", ")) }
}

pub fn shown_text(shown: &Shown, dimensions: &Dimensions) -> String {
    match shown {
        Shown::Short { resource, want, best } => format!(
            "short of {} (want {}, best has {})",
            dimensions.name(*resource),
            dimensions.show(*resource, *want),
            dimensions.show(*resource, *best)
        ),
        Shown::Card { ask, picky, best, free } => card_text(ask, *picky, *best, *free),
        Shown::Tainted(key) => format!("tainted ({key})"),
        Shown::Zone(why, zone) => format!("in zone {zone} {}", why_text(*why)),
        Shown::Rule(why, key) => format!("{} (by {key})", why_text(*why)),
        Shown::Plain(why) => why_text(*why).to_owned(),
    }
}

/// "without a card that has 8,000 MiB free (most free 4,000)", "without 2 cards that no pod uses
/// (best has 1)".
fn card_text(ask: &Ask, picky: bool, best: u32, free: i64) -> String {
    let its = if ask.cards == 1 { "its" } else { "their" };
    let alone = ask.cores >= ALL_CORES;
    let memory = match ask.memory {
        Memory::Mib(0) | Memory::Percent(0) => None,
        // A pod that gets the whole card gets all its memory.
        Memory::Percent(_) if alone => None,
        Memory::Mib(amount) => Some(format!("{} MiB", grouped(amount.unsigned_abs()))),
        Memory::Percent(percent) => Some(format!("{percent}% of {its} memory")),
    };
    let cores = (ask.cores > 0 && !alone).then(|| format!("{}% of {its} cores", ask.cores));
    let wants: Vec<String> = memory.into_iter().chain(cores).collect();
    let (cards, verb) = match ask.cards {
        1 => ("a card".to_owned(), "has"),
        cards => (format!("{} cards", grouped(u64::from(cards))), "have"),
    };
    let wanted = if picky { " of the wanted kind" } else { "" };
    let unused = if alone { " that no pod uses" } else { "" };
    let room = match wants.as_slice() {
        [] if alone => String::new(),
        [] => format!(" that {verb} room"),
        wants if alone => format!(" and {verb} {}", wants.join(" and ")),
        wants => format!(" that {verb} {} free", wants.join(" and ")),
    };
    let most = match ask.memory {
        Memory::Mib(amount) if ask.cards == 1 && !alone && free < amount => {
            format!(" (most free {})", grouped(free.max(0).unsigned_abs()))
        }
        _ if ask.cards > 1 => format!(" (best has {})", grouped(u64::from(best))),
        _ => String::new(),
    };
    format!("without {cards}{wanted}{unused}{room}{most}")
}

fn why_text(why: Why) -> &'static str {
    match why {
        Why::Fits => "fit",
        Why::Gone => "gone",
        Why::NotReady => "not ready",
        Why::Cordoned => "unschedulable",
        Why::Tainted => "tainted",
        Why::Affinity => "not matching the node selector or affinity",
        Why::Volume => "out of reach of a volume",
        Why::ClaimMissing => "without a volume claim that exists",
        Why::NodeGroup => "outside the queue's node groups",
        Why::RevocableOnly => "for preemptable pods only",
        Why::ZoneClosed => "that is closed now",
        Why::ZoneUnknown => "that tdm has no window for",
        Why::Port => "with a host port in use",
        Why::Short(_) => "short of a resource",
        Why::Card => "without a card that has room",
        Why::Together(_) => "without the pods it wants to be with",
        Why::Apart(_) => "with pods it keeps away from",
        Why::Avoided(_) => "with pods that keep away from it",
        Why::Spread(_) => "breaking the topology spread",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::node_reason::Bar;

    #[test]
    fn a_histogram_reads_like_a_sentence() {
        let mut dimensions = Dimensions::default();
        let resource = dimensions.intern("nvidia.com/gpu");
        let bars = vec![
            Bar { nodes: 3200, why: Shown::Short { resource, want: 8, best: 6 } },
            Bar { nodes: 1800, why: Shown::Tainted("infra".into()) },
        ];
        assert_eq!(
            histogram_text(&Histogram { nodes: 5000, fit: 0, bars }, &dimensions),
            "0/5,000 nodes fit: 3,200 short of nvidia.com/gpu (want 8, best has 6), 1,800 tainted (infra)"
        );
    }
}
