//! What an action asks for.

use crate::base::purpose::{Mode, Purpose};
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
    pub fn of(settings: &'s Settings, action: &'static str) -> Option<EvictionRequest<'s>> {
        let (purpose, settings) = settings.eviction_settings(action)?;
        Some(EvictionRequest { action, purpose, settings })
    }

    /// Whether gangs that have their minimum are given more: not where pods are taken one by one.
    pub fn helps_to_grow(&self) -> bool {
        self.settings.mode != Mode::Task
    }
}
