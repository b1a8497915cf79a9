//! The table of what decides between ways to make room, line by line: a line is asked only where
//! all before it are equal. docs/evictions.md shows it.

use std::cmp::{Ordering, Reverse};

use crate::base::ids::{GangId, QueueId};
use crate::base::parts_per_million::{PPM, share};
use crate::base::purpose::Purpose;
use crate::decision::choice::Line;
use crate::model::Cluster;
use crate::model::gangs::lost_work::{lost_with, says_how_far};
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, BundleKind};
use crate::policy::preemptor::Preemptor;
use crate::settings::eviction::BundleSettings;

/// What all that leaves in one way to make room amounts to.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Evictions beyond what PodDisruptionBudgets allow.
    pub violations: usize,
    /// Whether a gang breaks.
    pub breaks: bool,
    /// The position of its domain's tier among those that the gang may use, nearest first.
    pub step: usize,
    /// The highest priority that leaves; none if no pod is lost.
    pub priority: Option<i32>,
    /// The queues that lose pods.
    pub queues: Vec<QueueId>,
    /// The place of the queue that gives last, where that is known already.
    pub turn: Option<u32>,
    /// What the preemptor gets relative to what is lost, in parts per million.
    pub returns: i64,
    /// The gangs that lose pods, and those of them that break.
    pub gangs: Vec<GangId>,
    pub broken: Vec<GangId>,
    /// How many pods are moved, weighed.
    pub cost: i64,
}

impl Way {
    /// A bundle alone, compared with others of its domain.
    pub fn of(cluster: &Cluster, bundle: &Bundle) -> Way {
        let gang = &cluster.gangs[bundle.gang];
        let breaks = bundle.kind == BundleKind::Whole;
        Way {
            violations: cluster.budgets.broken_by(cluster, &bundle.pods).len(),
            breaks,
            step: 0,
            priority: Some(gang.priority),
            queues: vec![gang.queue],
            turn: Some(bundle.turn),
            returns: bundle.roi.unwrap_or(i64::MAX),
            gangs: vec![bundle.gang],
            broken: Some(bundle.gang).filter(|_| breaks).into_iter().collect(),
            cost: 0,
        }
    }

    /// Whether a gang that breaks says how far it is.
    fn tells_work(&self, cluster: &Cluster) -> bool {
        self.broken.iter().any(|&gang| says_how_far(cluster, gang))
    }
}

/// The table for one preemptor.
pub struct Table<'t> {
    policy: &'t Policy,
    preemptor: &'t Preemptor,
    pub lines: &'static [Line],
    /// Returns that differ by no more are equal.
    threshold: i64,
}

impl<'t> Table<'t> {
    pub fn new(
        policy: &'t Policy,
        preemptor: &'t Preemptor,
        settings: &BundleSettings,
    ) -> Table<'t> {
        let lines = lines(preemptor, settings.priority_first);
        Table { policy, preemptor, lines, threshold: settings.roi_threshold }
    }

    /// The best of these ways, and the next best with the line that decides between the two.
    pub fn choose(
        &self,
        cluster: &Cluster,
        ways: &[&Way],
    ) -> Option<(usize, Option<(usize, Line)>)> {
        let all: Vec<usize> = (0..ways.len()).collect();
        let best = self.best(cluster, ways, all.clone())?;
        let others = all.into_iter().filter(|&at| at != best).collect();
        let next = self.best(cluster, ways, others);
        let next = next.map(|next| (next, self.deciding_line(cluster, ways[best], ways[next])));
        Some((best, next))
    }

    /// Leaves, line by line, those that are equal to the best of those that remain. So the order is
    /// total although returns count as equal within a threshold.
    fn best(&self, cluster: &Cluster, ways: &[&Way], mut left: Vec<usize>) -> Option<usize> {
        let told = left.len() > 1 && left.iter().any(|&at| ways[at].tells_work(cluster));
        for &line in self.lines.iter().filter(|&&line| told || line != Line::LostWork) {
            let by = |a: usize, b: usize| self.compare(cluster, line, ways[a], ways[b]);
            let first = left.iter().copied().reduce(|a, b| if by(b, a).is_lt() { b } else { a })?;
            match line {
                Line::Return => {
                    let least = ways[first].returns.saturating_sub(self.threshold);
                    left.retain(|&at| ways[at].returns >= least);
                }
                _ => left.retain(|&at| by(first, at).is_eq()),
            }
        }
        left.first().copied()
    }

    /// The first line in which two ways differ.
    pub fn deciding_line(&self, cluster: &Cluster, winner: &Way, other: &Way) -> Line {
        let told = winner.tells_work(cluster) || other.tells_work(cluster);
        let differs = |line: &Line| match line {
            Line::Return => winner.returns.saturating_sub(other.returns) > self.threshold,
            Line::LostWork if !told => false,
            _ => self.compare(cluster, *line, winner, other).is_ne(),
        };
        self.lines.iter().copied().find(differs).unwrap_or(Line::Place)
    }

    /// Which of two ways is better by one line: the lesser one.
    pub fn compare(&self, cluster: &Cluster, line: Line, a: &Way, b: &Way) -> Ordering {
        match line {
            Line::Budgets => a.violations.cmp(&b.violations),
            Line::Breaks => a.breaks.cmp(&b.breaks),
            Line::Tier => a.step.cmp(&b.step),
            Line::Priority => a.priority.cmp(&b.priority),
            Line::Queue => self.queues(cluster, a, b),
            Line::Return => b.returns.cmp(&a.returns),
            Line::LostWork => self.work(cluster, a).cmp(&self.work(cluster, b)),
            Line::ServedLast => self.gangs(a, b, |a, b| self.policy.gang_order(cluster, b, a)),
            Line::Youngest => self.gangs(a, b, |a, b| youngest(cluster, a, b)),
            Line::Moves => a.cost.cmp(&b.cost),
            _ => Ordering::Equal,
        }
    }

    /// The figures of two ways by a line, where it has any.
    pub fn figures(&self, cluster: &Cluster, line: Line, a: &Way, b: &Way) -> (i64, i64) {
        let figure = |way: &Way| match line {
            Line::Budgets => way.violations as i64,
            Line::Priority => way.priority.map_or(0, i64::from),
            Line::Return => way.returns,
            Line::LostWork => self.work(cluster, way),
            Line::Moves => way.gangs.len() as i64,
            _ => 0,
        };
        (figure(a), figure(b))
    }

    /// The work that is lost with the gangs that break, in milliseconds.
    fn work(&self, cluster: &Cluster, way: &Way) -> i64 {
        let lost = way.broken.iter().map(|&gang| lost_with(cluster, gang, self.preemptor.now));
        lost.fold(0, i64::saturating_add)
    }

    /// Compares the queues that give last.
    fn queues(&self, cluster: &Cluster, a: &Way, b: &Way) -> Ordering {
        if let (Some(a), Some(b)) = (a.turn, b.turn) {
            return a.cmp(&b);
        }
        let by = |a: &QueueId, b: &QueueId| {
            self.policy.queue_gives_first(cluster, self.preemptor, *a, *b)
        };
        let latest = |way: &Way| way.queues.iter().copied().max_by(by);
        match (latest(a), latest(b)) {
            (Some(a), Some(b)) => by(&a, &b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    /// Whether a gang leaves before another by the last line.
    pub fn prefers(&self, cluster: &Cluster, gang: GangId, other: GangId) -> bool {
        let order = match self.lines.last() {
            Some(Line::Youngest) => youngest(cluster, gang, other),
            _ => self.policy.gang_order(cluster, other, gang),
        };
        order.is_lt()
    }

    /// Whether a way is better than another one whatever that will turn out to be, of which only
    /// the best that it could be is known. `told` is whether any gang says how far it is.
    pub fn surely_beats(
        &self,
        cluster: &Cluster,
        known: &[&Way],
        (bound, told): (&Way, bool),
    ) -> bool {
        let mut rivals: Vec<&Way> = known.to_vec();
        for &line in self.lines {
            match line {
                Line::Return => {
                    // As good as equal, or else it may be the best.
                    let least = bound.returns.saturating_sub(self.threshold);
                    if rivals.iter().any(|way| way.returns < least) {
                        return false;
                    }
                }
                Line::LostWork if told => return false,
                Line::LostWork => {}
                _ => {
                    let orders = |way: &&Way| self.compare(cluster, line, way, bound);
                    if rivals.iter().any(|way| orders(way).is_lt()) {
                        return true;
                    }
                    rivals.retain(|way| orders(way).is_eq());
                }
            }
            if rivals.is_empty() {
                return false;
            }
        }
        true
    }

    /// Orders ways by what is known of them before they are tried.
    pub fn estimated(&self, cluster: &Cluster, a: &Way, b: &Way) -> Ordering {
        let lines = self.lines.iter().filter(|&&line| line != Line::LostWork);
        lines.fold(Ordering::Equal, |order, &line| {
            order.then_with(|| self.compare(cluster, line, a, b))
        })
    }

    /// Compares the gangs that leave first.
    fn gangs(&self, a: &Way, b: &Way, by: impl Fn(GangId, GangId) -> Ordering) -> Ordering {
        let first = |way: &Way| way.gangs.iter().copied().min_by(|&a, &b| by(a, b));
        match (first(a), first(b)) {
            (Some(a), Some(b)) => by(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

/// Younger gangs come first.
pub fn youngest(cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
    let age =
        |gang: GangId| (Reverse(cluster.gangs[gang].created), Reverse(&cluster.gangs[gang].key));
    age(a).cmp(&age(b))
}

/// The lines that are asked, in this order.
pub fn lines(preemptor: &Preemptor, priority_first: bool) -> &'static [Line] {
    use Line::{
        Breaks, Budgets, LostWork, Moves, Priority, Queue, Return, ServedLast, Tier, Youngest,
    };
    match (preemptor.purpose, preemptor.by_fair_share()) {
        (Purpose::Consolidate, _) => &[Moves],
        (Purpose::Reclaim, true) => &[Budgets, Tier, Queue, Priority, Breaks, LostWork, Youngest],
        (_, true) => &[Budgets, Tier, Priority, Breaks, LostWork, Youngest],
        (Purpose::Reclaim, false) => {
            &[Budgets, Breaks, Tier, Queue, Return, Priority, LostWork, ServedLast]
        }
        (_, false) if priority_first => {
            &[Budgets, Priority, Breaks, Tier, Return, LostWork, ServedLast]
        }
        (_, false) => &[Budgets, Breaks, Tier, Priority, Return, LostWork, ServedLast],
    }
}

/// The return of a way that loses this much of so many missing resources: all that the preemptor
/// requests of these, relative to that.
pub fn returns(resources: usize, cost: i64) -> i64 {
    if cost <= 0 { i64::MAX } else { share(resources as i64 * PPM, cost) }
}
