//! What we write on a gang's PodGroup, so that it outlives this process. What should be there is
//! compared with what was last read or told, so that only changes are said, and what someone else
//! has changed is said again.

use muster_api::Time;
use muster_api::core::Meta;
use muster_api::keys::{KAI_STALE_SINCE, RESERVATIONS, STALE_SINCE};
use serde::{Deserialize, Serialize};

use crate::model::reservations::Reservation;

/// Texts by what they are about. The keys are ours: nobody else writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    pub stale_since: Option<String>,
    pub reservations: Option<String>,
}

impl Texts {
    fn of(meta: &Meta) -> Texts {
        let text = |key: &str| meta.annotations.get(key).cloned();
        Texts { stale_since: text(STALE_SINCE), reservations: text(RESERVATIONS) }
    }

    fn by_key(&self) -> [(&'static str, &Option<String>); 2] {
        [(RESERVATIONS, &self.reservations), (STALE_SINCE, &self.stale_since)]
    }
}

/// Few gangs have any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// What the object says.
    said: Texts,
    /// What it will say when all that was told is written.
    told: Texts,
    /// Since when an earlier process, or another scheduler, has seen it stale.
    inherited: Option<Time>,
    /// Room that is kept for pods that will be made again, in the order of the nodes' names, and
    /// how many pods there are then.
    pub(super) reserved: Vec<Reservation>,
    pub(crate) size: u32,
}

impl Notes {
    /// An object that this process hasn't met before.
    pub(super) fn read(meta: &Meta) -> Option<Box<Notes>> {
        let said = Texts::of(meta);
        let time = |key: &str| meta.annotations.get(key).and_then(|text| Time::parse(text).ok());
        let inherited = time(STALE_SINCE).or_else(|| time(KAI_STALE_SINCE));
        Notes { told: said.clone(), said, inherited, ..Notes::default() }.boxed()
    }

    /// The object has come again. Unless it says something new it tells nothing: what was told may
    /// still be on its way.
    pub(super) fn reread(notes: &mut Option<Box<Notes>>, meta: &Meta) {
        let says = Texts::of(meta);
        let mut known = notes.take().map_or_else(Notes::default, |notes| *notes);
        if known.said != says {
            known.told = says.clone();
            known.said = says;
        }
        *notes = known.boxed();
    }

    /// Since when the gang was stale before this process looked at it; asked once.
    pub(crate) fn take_inherited(notes: &mut Option<Box<Notes>>) -> Option<Time> {
        let mut known = notes.take()?;
        let inherited = known.inherited.take();
        *notes = known.boxed();
        inherited
    }

    /// What is to be written for the object to say this, and nothing more; none is taken off. It
    /// counts as told.
    pub(crate) fn tell(
        notes: &mut Option<Box<Notes>>,
        wish: Texts,
    ) -> Vec<(&'static str, Option<String>)> {
        let mut known = notes.take().map_or_else(Notes::default, |notes| *notes);
        let pairs = wish.by_key().into_iter().zip(known.told.by_key());
        let changes = pairs.filter(|((_, wish), (_, told))| wish != told);
        let changes = changes.map(|((key, wish), _)| (key, wish.clone())).collect();
        known.told = wish;
        *notes = known.boxed();
        changes
    }

    pub(super) fn reserved(&self) -> &[Reservation] {
        &self.reserved
    }

    /// What the object says of reservations.
    pub(crate) fn reservations(&self) -> Option<&str> {
        self.said.reservations.as_deref()
    }

    /// What the object says, or will once all that was told is written.
    pub(super) fn told(&self) -> [(&'static str, Option<&str>); 2] {
        self.told.by_key().map(|(key, text)| (key, text.as_deref()))
    }

    /// In a box, if there is anything in it.
    fn boxed(self) -> Option<Box<Notes>> {
        (self != Notes::default()).then(|| Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(pairs: &[(&str, &str)]) -> Meta {
        let annotations =
            pairs.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
        Meta { annotations, ..Meta::default() }
    }

    fn since(text: &str) -> Texts {
        Texts { stale_since: Some(text.to_owned()), ..Texts::default() }
    }

    #[test]
    fn only_changes_are_told_and_an_older_view_undoes_nothing() {
        let mut notes = Notes::read(&meta(&[]));
        assert_eq!(notes, None);
        assert_eq!(Notes::tell(&mut notes, since("a")), [(STALE_SINCE, Some("a".to_owned()))]);
        Notes::reread(&mut notes, &meta(&[("theirs", "x")]));
        assert_eq!(Notes::tell(&mut notes, since("a")), [], "it is on its way");
        Notes::reread(&mut notes, &meta(&[(STALE_SINCE, "a")]));
        assert_eq!(Notes::tell(&mut notes, since("a")), []);
        Notes::reread(&mut notes, &meta(&[(STALE_SINCE, "b")]));
        assert_eq!(Notes::tell(&mut notes, since("a")).len(), 1, "somebody has changed it");
        assert_eq!(Notes::tell(&mut notes, Texts::default()), [(STALE_SINCE, None)]);
        Notes::reread(&mut notes, &meta(&[]));
        assert_eq!(Notes::tell(&mut notes, Texts::default()), []);
        assert_eq!(notes, None, "nothing is kept of a gang without notes");
    }

    #[test]
    fn our_word_goes_before_that_of_another_scheduler() {
        let ours = (STALE_SINCE, "2026-01-05T00:00:00Z");
        let theirs = (KAI_STALE_SINCE, "2026-01-04T00:00:00Z");
        let inherited = |pairs: &[_]| Notes::take_inherited(&mut Notes::read(&meta(pairs)));
        let time = |(_, text): (&str, &str)| Time::parse(text).ok();
        assert_eq!(inherited(&[ours, theirs]), time(ours));
        assert_eq!(inherited(&[theirs]), time(theirs));
        assert_eq!(inherited(&[(STALE_SINCE, "yesterday"), theirs]), time(theirs));
        assert_eq!(inherited(&[]), None);
    }
}
