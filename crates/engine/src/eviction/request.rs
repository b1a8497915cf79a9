//! What an action asks for.

use crate::base::purpose::{Mode, Purpose};
use crate::order::session::{Action, MakesRoom};
use crate::settings::actions::Settings;
use crate::settings::eviction::EvictionSettings;

/// What an action is out for.
#[derive(Copy, Clone)]
pub struct EvictionRequest<'s> {
    pub action: &'static str,
    pub purpose: Purpose,
    pub settings: &'s EvictionSettings,
}

impl<'s> EvictionRequest<'s> {
    /// The errand of an action that takes room.
    pub fn of(settings: &'s Settings, action: &Action) -> Option<EvictionRequest<'s>> {
        let MakesRoom { purpose, settings: of, .. } = action.makes_room.as_ref()?;
        Some(EvictionRequest { action: action.name, purpose: *purpose, settings: of(settings) })
    }

    /// Whether gangs that have their minimum are given more: not where pods are taken one by one.
    pub fn helps_to_grow(&self) -> bool {
        self.settings.mode != Mode::Task
    }
}
