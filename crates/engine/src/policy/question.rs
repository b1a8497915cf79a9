//! What plugins can be asked: one table of the questions, with the switches of the configuration
//! that enable their answers, and of the functions of [`Plugin`] that answer them.
//!
//! A plugin says which questions it answers by overriding functions. The attribute
//! `#[answers]` makes the list of them, so no override can be forgotten:
//!
//! ```
//! use muster_engine::{Plugin, Question, answers, ids::PodId, model::Cluster};
//!
//! struct LongNamesFirst;
//!
//! #[answers]
//! impl Plugin for LongNamesFirst {
//!     fn pod_urgency(&self, cluster: &Cluster, pod: PodId) -> i64 {
//!         cluster.pods.name(pod).len() as i64
//!     }
//! }
//!
//! assert_eq!(LongNamesFirst.answers(), [Question::PodOrder]);
//! ```
//!
//! Without the attribute there is no list, and the plugin does not compile:
//!
//! ```compile_fail,E0046
//! use muster_engine::{Plugin, Question, answers, ids::PodId, model::Cluster};
//!
//! struct LongNamesFirst;
//!
//! impl Plugin for LongNamesFirst {
//!     fn pod_urgency(&self, cluster: &Cluster, pod: PodId) -> i64 {
//!         cluster.pods.name(pod).len() as i64
//!     }
//! }
//!
//! assert_eq!(LongNamesFirst.answers(), [Question::PodOrder]);
//! ```
//!
//! A trait may have a function only if the table says which question it answers:
//!
//! ```
//! use muster_engine::{Question, answers, each_function_has_a_question};
//!
//! #[each_function_has_a_question]
//! trait Opinion {
//!     fn answers(&self) -> Vec<Question>;
//!     fn pod_urgency(&self) -> i64;
//! }
//!
//! struct Indifferent;
//!
//! #[answers]
//! impl Opinion for Indifferent {
//!     fn pod_urgency(&self) -> i64 {
//!         0
//!     }
//! }
//!
//! assert_eq!(Indifferent.answers(), [Question::PodOrder]);
//! ```
//!
//! With another name, of which the table says nothing, neither the trait nor the `impl` compiles:
//!
//! ```compile_fail,E0425
//! use muster_engine::{Question, each_function_has_a_question};
//!
//! #[each_function_has_a_question]
//! trait Opinion {
//!     fn answers(&self) -> Vec<Question>;
//!     fn pod_mood(&self) -> i64;
//! }
//! ```
//!
//! ```compile_fail,E0425
//! use muster_engine::{Question, answers};
//!
//! trait Opinion {
//!     fn answers(&self) -> Vec<Question>;
//!     fn pod_mood(&self) -> i64;
//! }
//!
//! struct Indifferent;
//!
//! #[answers]
//! impl Opinion for Indifferent {
//!     fn pod_mood(&self) -> i64 {
//!         0
//!     }
//! }
//!
//! assert_eq!(Indifferent.answers(), [Question::PodOrder]);
//! ```
//!
//! [`Plugin`]: crate::policy::plugin::Plugin

use crate::base::purpose::Purpose;

macro_rules! table {
    (
        switches { $($switch:ident,)* }
        questions { $($question:ident: $counts:expr,)* }
        functions { $($function:ident: $($answered:ident)+,)* }
    ) => {
        /// Which answers of a plugin count, by the configuration.
        #[derive(Clone, Debug)]
        pub struct Switches {
            $(pub $switch: bool,)*
            pub hierarchy: bool,
        }

        impl Default for Switches {
            fn default() -> Self {
                Switches { $($switch: true,)* hierarchy: false }
            }
        }

        /// What can be asked. Only plugins that override a function which answers it are asked.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum Question {
            $($question,)*
        }

        impl Question {
            pub const ALL: [Question; Question::COUNT] = [$(Question::$question,)*];
            pub const COUNT: usize = [$(stringify!($question)),*].len();

            /// Whether the configuration lets a plugin's answer count.
            pub fn counts(self, switches: &Switches) -> bool {
                let counts: fn(&Switches) -> bool = match self {
                    $(Question::$question => $counts,)*
                };
                counts(switches)
            }
        }

        /// For each function of a plugin, the questions that it answers.
        pub mod answered_by {
            use super::Question;

            $(
                pub const fn $function() -> &'static [Question] {
                    &[$(Question::$answered),+]
                }
            )*
        }
    };
}

table! {
    switches {
        gang_order,
        queue_order,
        pod_order,
        ready,
        enqueue,
        overused,
        may_allocate,
        filter,
        score,
        domains,
        preemptable,
        reclaimable,
        shuffle,
    }

    // A question, and when the configuration lets a plugin's answer to it count.
    questions {
        GangOrder: |on| on.gang_order,
        QueueOrder: |on| on.queue_order,
        PodOrder: |on| on.pod_order,
        Ready: |on| on.ready,
        Enqueue: |on| on.enqueue,
        Overused: |on| on.overused,
        MayAllocate: |on| on.may_allocate,
        Filter: |on| on.filter,
        Score: |on| on.score,
        DomainScore: |on| on.score,
        Domains: |on| on.domains,
        Protects: |on| on.preemptable || on.reclaimable,
        Preempt: |on| on.preemptable,
        Reclaim: |on| on.reclaimable,
        Shuffle: |on| on.shuffle,
        // Volcano has no switches for these.
        Shares: |_| true,
        NextChange: |_| true,
    }

    // A function of `Plugin`, and the questions that it answers.
    functions {
        gang_order: GangOrder,
        queue_order: QueueOrder,
        turn_order: QueueOrder,
        pod_urgency: PodOrder,

        gang_can_start: Ready,
        enforces_minimum: Ready,
        enqueue: Enqueue,
        overused: Overused,
        may_allocate: MayAllocate,
        could_ever_allocate: MayAllocate,

        filter: Filter,
        sharing: Filter,
        score: Score,
        next_change: NextChange,
        domain_score: DomainScore,
        domain_weight: Domains,
        most_domains_to_clear: Domains,
        spares_whole_domains: Domains,

        protects: Protects,
        vetoes: Preempt Reclaim,
        vetoes_after: Preempt Reclaim,
        restrains_until: Preempt Reclaim,
        outranks: Preempt Reclaim,
        eviction_cost: Preempt Reclaim,
        vetoes_gang_loss: Preempt Reclaim,
        rejects_outcome: Preempt Reclaim,
        order_bundles: Preempt Reclaim,
        may_reclaim: Reclaim,
        queue_gives_first: Reclaim,

        pods_to_shuffle: Shuffle,
        vetoes_shuffle: Shuffle,

        has_queue_tree: Shares,
        fairness: Shares,
        measure_by_fair_shares: Shares,
        fair_share_of: Shares,
        deserves: Shares,
    }
}

/// What the attribute `#[answers]` adds to an `impl`.
#[doc(hidden)]
#[macro_export]
macro_rules! answers_of {
    ($($function:ident)*) => {
        fn answers(&self) -> ::std::vec::Vec<$crate::Question> {
            let lists: &[&[$crate::Question]] = &[$($crate::answered_by::$function()),*];
            lists.concat()
        }
    };
}

/// What the attribute `#[each_function_has_a_question]` adds after a trait.
#[doc(hidden)]
#[macro_export]
macro_rules! have_questions {
    ($($function:ident)*) => {
        const _: &[&[$crate::Question]] = &[$($crate::answered_by::$function()),*];
    };
}

impl Question {
    /// The question whose answers count when room is made for a purpose.
    pub fn of(purpose: Purpose) -> Question {
        match purpose {
            Purpose::Preempt | Purpose::Within | Purpose::Consolidate => Question::Preempt,
            Purpose::Reclaim => Question::Reclaim,
        }
    }
}
