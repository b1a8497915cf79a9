//! What became of the writes of a Job: after a refusal the next try waits, longer each time, and
//! the Job says why it waits.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::event::Refusal;
use crate::write::WriteId;

/// The first pause after a refused write; it doubles up to the longest (in milliseconds).
const PAUSE: i64 = 100;
const LONGEST_PAUSE: i64 = 60_000;

/// What keeps a Job from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// One word, for the status.
    pub reason: &'static str,
    /// The reason of the Event.
    pub event: &'static str,
    pub message: String,
}

impl Trouble {
    pub fn new(reason: &'static str, event: &'static str, message: String) -> Trouble {
        Trouble { reason, event, message }
    }
}

#[derive(Default)]
pub struct Answers {
    /// Writes that are under way, and the reason of the Event if they are refused.
    pub waits_for: BTreeMap<WriteId, &'static str>,
    /// How many tries in a row were refused, and the last refusal since the last turn.
    refused: u32,
    refusal: Option<Trouble>,
    /// Whether a write came too late.
    is_late: bool,
    not_before: Option<Time>,
    /// The last refusal, until a try has succeeded.
    pub blocked: Option<Trouble>,
    /// Whether the writes that were answered last were a try, and not the news of a refusal.
    tried: bool,
}

/// What a Job may do now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Whatever it wants.
    Act,
    /// Say what was refused.
    Tell,
    Wait(Time),
}

impl Answers {
    /// An answer has come; `owner` is the UID of the Job.
    pub fn hear(&mut self, id: WriteId, result: Result<(), Refusal>, owner: &str) {
        let event = self.waits_for.remove(&id).unwrap_or("FailedCreatePod");
        let message = match result {
            Ok(()) => return,
            // What the write was decided on is out of date; the news is on its way.
            Err(Refusal::NotFound | Refusal::Conflict) => {
                self.is_late = true;
                return;
            }
            Err(Refusal::Exists { owner: found }) if found.as_deref() == Some(owner) => return,
            Err(Refusal::Exists { .. }) => {
                "an object of the name that is needed is there and does not belong to this Job; \
                 delete or rename it"
                    .to_owned()
            }
            Err(Refusal::Refused(message)) => message,
            Err(Refusal::Unknown(message)) => format!("no answer: {message}"),
        };
        self.refusal = Some(Trouble::new("WriteRefused", event, message));
    }

    /// All answers are there: what follows from them.
    pub fn conclude(&mut self, now: Time) -> Leave {
        let was_late = std::mem::take(&mut self.is_late);
        if let Some(refusal) = self.refusal.take() {
            let pause = PAUSE.saturating_mul(1 << self.refused.min(20)).min(LONGEST_PAUSE);
            self.refused += 1;
            self.not_before = Some(now.plus_ms(pause));
            self.blocked = Some(refusal);
            self.tried = false;
            return Leave::Tell;
        }
        if was_late {
            self.not_before = Some(now.plus_ms(PAUSE));
        } else if std::mem::take(&mut self.tried) {
            self.refused = 0;
            self.blocked = None;
        }
        match self.next(now) {
            Some(moment) => Leave::Wait(moment),
            None => {
                self.tried = true;
                Leave::Act
            }
        }
    }

    /// When the next try may be made, if it has to wait.
    pub fn next(&self, now: Time) -> Option<Time> {
        self.not_before.filter(|moment| *moment > now)
    }
}
