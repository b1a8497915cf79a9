//! `muster simulate --journal`: the run as a scheduler would have recorded it, to try `muster
//! replay` without a cluster.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use muster_engine::Engine;
use muster_journal::{Configuration, Journal, Limits};
use muster_sim::chaos::{Moment, Witness};

use crate::commands::embedded::scheduler_names;
use crate::failure::Failure;
use crate::terminal;

/// Records the events and plans of a simulation's engine.
pub struct Recorder(Rc<RefCell<Journal>>);

impl Recorder {
    /// Begins a segment in the folder, after the existing ones.
    pub fn create(folder: &Path, config: Configuration) -> Result<Recorder, Failure> {
        let journal = Journal::create(folder, Limits::default(), scheduler_names(), config);
        let failed = |error| Failure::Work(format!("writing {}: {error}", folder.display()));
        Ok(Recorder(Rc::new(RefCell::new(journal.map_err(failed)?))))
    }

    /// Records one moment of the simulation.
    pub fn witness(&self) -> Box<Witness<'static>> {
        let journal = self.0.clone();
        Box::new(move |engine: &Engine, moment| {
            let mut journal = journal.borrow_mut();
            match moment {
                Moment::Start => {}
                Moment::Event(event) => journal.event(event),
                Moment::Cycle(now, plan) => journal.cycle(now, plan),
            }
            if journal.wants_checkpoint() {
                journal.checkpoint(engine.checkpoint());
            }
        })
    }

    /// Warns if records are missing. The journal is closed with the simulation.
    pub fn conclude(&self, folder: &Path) -> Result<(), Failure> {
        let health = self.0.borrow().health();
        let folder = folder.display();
        if let Some(error) = health.error {
            return Err(Failure::Work(format!("writing {folder}: {error}")));
        }
        if health.gaps > 0 {
            terminal::note(format_args!(
                "{folder}: the disk was too slow for all of it; what is missing is not replayed"
            ));
        }
        Ok(())
    }
}
