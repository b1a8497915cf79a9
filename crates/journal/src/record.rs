//! The records of a segment.

use muster_api::Time;
use muster_engine::config::BUILTIN;
use muster_engine::{Checkpoint, Event, Plan};
use serde::{Deserialize, Serialize};

/// Told apart by a byte in front, so that what is written need not be owned first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Header = 1,
    Checkpoint = 2,
    Event = 3,
    Cycle = 4,
    Config = 5,
    /// The writer closed the segment. Since format 2.
    End = 6,
}

impl Kind {
    pub fn of(byte: u8) -> Option<Kind> {
        let all =
            [Kind::Header, Kind::Checkpoint, Kind::Event, Kind::Cycle, Kind::Config, Kind::End];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A header and a checkpoint come first, in this order, and never again in a segment.
#[derive(Clone, Debug)]
pub enum Record {
    Header(Header),
    Checkpoint(Box<Checkpoint>),
    Event(Box<Event>),
    Cycle(Cycle),
    /// From here on the engine uses another configuration.
    Config(Configuration),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The version of muster that recorded it.
    pub muster: String,
    pub scheduler_names: Vec<String>,
    pub config: Configuration,
}

/// A configuration as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The name of the file, only for messages.
    pub name: String,
    pub text: String,
}

impl Configuration {
    /// The default configuration.
    pub fn builtin() -> Configuration {
        Configuration { name: "builtin".into(), text: BUILTIN.into() }
    }
}

/// To be written, the plan is borrowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cycle<P = Plan> {
    pub now: Time,
    pub plan: P,
}
