//! What plugins can be asked, and which answers the configuration lets count.

use crate::base::purpose::Purpose;

/// What can be asked. A plugin lists the questions that it answers, and only those are put to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Question {
    GangOrder,
    QueueOrder,
    PodOrder,
    Ready,
    Enqueue,
    Overused,
    MayAllocate,
    Filter,
    Score,
    DomainScore,
    Domains,
    Protects,
    Preempt,
    Reclaim,
    Shuffle,
}

impl Question {
    /// The question whose answers count where room is taken for a purpose.
    pub fn of(purpose: Purpose) -> Question {
        match purpose {
            Purpose::Preempt | Purpose::Within | Purpose::Consolidate => Question::Preempt,
            Purpose::Reclaim => Question::Reclaim,
        }
    }

    pub const ALL: [Question; 15] = [
        Question::GangOrder,
        Question::QueueOrder,
        Question::PodOrder,
        Question::Ready,
        Question::Enqueue,
        Question::Overused,
        Question::MayAllocate,
        Question::Filter,
        Question::Score,
        Question::DomainScore,
        Question::Domains,
        Question::Protects,
        Question::Preempt,
        Question::Reclaim,
        Question::Shuffle,
    ];

    /// Whether the configuration lets a plugin's answer count.
    pub fn switched_on(self, switches: &Switches) -> bool {
        match self {
            Question::GangOrder => switches.gang_order,
            Question::QueueOrder => switches.queue_order,
            Question::PodOrder => switches.pod_order,
            Question::Ready => switches.ready,
            Question::Enqueue => switches.enqueue,
            Question::Overused => switches.overused,
            Question::MayAllocate => switches.may_allocate,
            Question::Filter => switches.filter,
            Question::Score | Question::DomainScore => switches.score,
            Question::Domains => switches.domains,
            Question::Protects => switches.preemptable || switches.reclaimable,
            Question::Preempt => switches.preemptable,
            Question::Reclaim => switches.reclaimable,
            Question::Shuffle => switches.shuffle,
        }
    }
}

/// Which of a plugin's answers count, as the configuration says. Named after the questions.
#[derive(Clone, Debug)]
pub struct Switches {
    pub gang_order: bool,
    pub queue_order: bool,
    pub pod_order: bool,
    pub ready: bool,
    pub enqueue: bool,
    pub overused: bool,
    pub may_allocate: bool,
    pub filter: bool,
    pub score: bool,
    pub domains: bool,
    pub preemptable: bool,
    pub reclaimable: bool,
    pub shuffle: bool,
    pub hierarchy: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            gang_order: true,
            queue_order: true,
            pod_order: true,
            ready: true,
            enqueue: true,
            overused: true,
            may_allocate: true,
            filter: true,
            score: true,
            domains: true,
            preemptable: true,
            reclaimable: true,
            shuffle: true,
            hierarchy: false,
        }
    }
}
