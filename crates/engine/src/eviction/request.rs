//! What an action asks for.

use crate::base::purpose::{Mode, Purpose};
use crate::settings::actions::Settings;
use crate::settings::eviction::Taking;

/// What an action is out for.
#[derive(Copy, Clone)]
pub struct Errand<'s> {
    pub action: &'static str,
    pub purpose: Purpose,
    pub taking: &'s Taking,
}

impl<'s> Errand<'s> {
    /// The errand of an action that takes room.
    pub fn of(settings: &'s Settings, action: &'static str) -> Option<Errand<'s>> {
        let (purpose, taking) = settings.taking(action)?;
        Some(Errand { action, purpose, taking })
    }

    /// Whether gangs that have their minimum are given more: not where pods are taken one by one.
    pub fn helps_to_grow(&self) -> bool {
        self.taking.mode != Mode::Task
    }
}
