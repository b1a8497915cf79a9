//! The mode of `preempt` and `reclaim`, wherever it is written: `mode` among an action's arguments,
//! or `gangAwareEnable` there, in the arguments of a plugin or of a tier. Two settings that
//! disagree are an error, since either may be intended.

use std::ptr;

use muster_yaml::{Value, Yaml};

use crate::base::purpose::Mode;
use crate::config::actions::Named;
use crate::config::lists::ACTIONS;
use crate::order::session::Action;
use crate::settings::actions::Settings;
use crate::settings::argument::Argument;
use crate::settings::diagnostic::{Place, Report, describe};
use crate::settings::scalar;

/// The arguments that any plugin or tier may have for these actions.
pub(super) const SWITCHES: &[Argument] = &[
    Argument {
        name: "gangAwareEnable",
        default: "false",
        meaning: "preempt and reclaim in mode gang",
    },
    Argument { name: "preempt.gangAwareEnable", default: "false", meaning: "preempt in mode gang" },
    Argument { name: "reclaim.gangAwareEnable", default: "false", meaning: "reclaim in mode gang" },
];

/// The actions that have a mode: `preempt` and `reclaim`.
fn with_mode() -> impl Iterator<Item = (&'static Action, fn(&mut Settings) -> &mut Mode)> {
    let mode_of = |action: &'static Action| Some((action, action.makes_room.as_ref()?.mode?));
    ACTIONS.iter().copied().filter_map(mode_of)
}

/// All settings of modes.
#[derive(Default)]
pub(super) struct Said<'y>(Vec<Word<'y>>);

struct Word<'y> {
    at: Place,
    key: &'y str,
    actions: Vec<&'static Action>,
    says: Says,
}

#[derive(Copy, Clone)]
enum Says {
    Mode(Mode),
    Aware(bool),
}

impl<'y> Said<'y> {
    /// Reads the arguments of an action.
    pub fn by_action(
        &mut self,
        action: &'static Action,
        arguments: Option<&'y Yaml>,
        report: &mut Report,
    ) {
        if with_mode().any(|(other, _)| ptr::eq(other, action)) {
            self.hear(&[action], arguments, report);
        }
    }

    /// Reads the arguments of a plugin or a tier.
    pub fn by_tier(&mut self, arguments: Option<&'y Yaml>, report: &mut Report) {
        let actions: Vec<&'static Action> = with_mode().map(|(action, _)| action).collect();
        self.hear(&actions, arguments, report);
    }

    fn hear(
        &mut self,
        about: &[&'static Action],
        arguments: Option<&'y Yaml>,
        report: &mut Report,
    ) {
        let Some(Value::Map(entries)) = arguments.map(|arguments| &arguments.value) else { return };
        for (key, value) in entries {
            let named = |action: &&&'static Action| {
                key.name.strip_prefix(action.name) == Some(".gangAwareEnable")
            };
            let (actions, says) = match key.name.as_str() {
                "gangAwareEnable" => {
                    (about.to_vec(), scalar::boolean(&value.value).map(Says::Aware))
                }
                // An invalid mode is reported where the action reads its arguments.
                "mode" if about.len() == 1 => match value.as_str().and_then(Mode::named) {
                    Some(mode) => (about.to_vec(), Some(Says::Mode(mode))),
                    None => continue,
                },
                _ => match about.iter().find(named) {
                    Some(&action) => (vec![action], scalar::boolean(&value.value).map(Says::Aware)),
                    None => continue,
                },
            };
            match says {
                Some(says) => self.0.push(Word { at: key.into(), key: &key.name, actions, says }),
                None => {
                    let message = format!("expected true or false, found {}", describe(value));
                    report.error(key.into(), &key.name, message, "");
                }
            }
        }
    }

    /// Gives the actions their modes.
    pub fn settle(&self, named: &Named, settings: &mut Settings, report: &mut Report) {
        for (action, mode) in with_mode() {
            let about = |word: &&Word| word.actions.iter().any(|other| ptr::eq(*other, action));
            let words: Vec<&Word> = self.0.iter().filter(about).collect();
            let contrary = words.iter().enumerate().find_map(|(at, word)| {
                words[..at]
                    .iter()
                    .find(|former| !agree(former.says, word.says))
                    .map(|former| (former, word))
            });
            if let Some((former, word)) = contrary {
                let message = format!(
                    "{}, but {} in line {} {}",
                    told(action.name, word.says),
                    former.key,
                    former.at.line,
                    told_otherwise(former.says)
                );
                report.error(word.at, word.key, message, "remove one of the two");
            }
            if words.iter().any(|word| matches!(word.says, Says::Aware(true))) {
                *mode(settings) = Mode::Gang;
            }
        }
        for word in &self.0 {
            let runs = |action: &&'static Action| named.runs(action);
            if matches!(word.says, Says::Aware(_)) && !word.actions.iter().any(runs) {
                let names: Vec<&str> = word.actions.iter().map(|action| action.name).collect();
                let message = format!("no effect: {} is not among the actions", names.join(" or "));
                report.warning(word.at, word.key, message, format!("add {} to actions", names[0]));
            }
        }
    }
}

fn agree(one: Says, other: Says) -> bool {
    match (one, other) {
        (Says::Aware(one), Says::Aware(other)) => one == other,
        (Says::Mode(mode), Says::Aware(aware)) | (Says::Aware(aware), Says::Mode(mode)) => {
            (mode == Mode::Gang) == aware
        }
        (Says::Mode(one), Says::Mode(other)) => one == other,
    }
}

fn told(action: &str, says: Says) -> String {
    match says {
        Says::Mode(mode) => format!("{action} is in mode {} here", mode.name()),
        Says::Aware(true) => format!("this puts {action} in mode gang"),
        Says::Aware(false) => format!("this keeps {action} from mode gang"),
    }
}

fn told_otherwise(says: Says) -> String {
    match says {
        Says::Mode(mode) => format!("says {}", mode.name()),
        Says::Aware(on) => format!("says {on}"),
    }
}
