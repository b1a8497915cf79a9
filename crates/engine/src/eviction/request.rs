//! What an action asks for.

use crate::base::purpose::{Mode, Purpose};
use crate::order::session::{Action, MakesRoom};
use crate::settings::actions::Settings;
use crate::settings::eviction::EvictionSettings;

/// What `preempt`, `reclaim` or `consolidate` asks for.
#[derive(Copy, Clone)]
pub struct EvictionRequest<'s> {
    pub action: &'static str,
    pub purpose: Purpose,
    pub settings: &'s EvictionSettings,
}

impl<'s> EvictionRequest<'s> {
    /// The request of an action that evicts; nothing for other actions.
    pub fn of(settings: &'s Settings, action: &Action) -> Option<EvictionRequest<'s>> {
        let MakesRoom { purpose, settings: of, .. } = action.makes_room.as_ref()?;
        Some(EvictionRequest { action: action.name, purpose: *purpose, settings: of(settings) })
    }

    /// Whether room is also made for pods above the minimum of a gang: not in mode `task`.
    pub fn helps_to_grow(&self) -> bool {
        self.settings.mode != Mode::Task
    }
}
