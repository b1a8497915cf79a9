//! What we write on a gang's PodGroup so that it outlives this process. The desired text is
//! compared with what was last read or written: only changes are written, and text that another
//! writer changed is written again.

use muster_api::Time;
use muster_api::core::Meta;
use muster_api::keys::{KAI_STALE_SINCE, RESERVATIONS, STALE_SINCE};
use serde::{Deserialize, Serialize};

use crate::model::reservations::Reservation;

/// Texts by what they are about. The keys are ours: no other program writes them.
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
pub struct GroupAnnotations {
    /// What the object says.
    #[serde(alias = "said")]
    read: Texts,
    /// What the object will say once everything planned is written.
    #[serde(alias = "told")]
    written: Texts,
    /// Since when the gang is stale, according to an earlier process or another scheduler.
    inherited: Option<Time>,
    /// Reservations in the order of the nodes' names, and how many pods the gang will have when all
    /// are used.
    pub(super) reserved: Vec<Reservation>,
    pub(crate) size: u32,
}

impl GroupAnnotations {
    /// A new object for this process.
    pub(super) fn read(meta: &Meta) -> Option<Box<GroupAnnotations>> {
        let read = Texts::of(meta);
        let time = |key: &str| meta.annotations.get(key).and_then(|text| Time::parse(text).ok());
        let inherited = time(STALE_SINCE).or_else(|| time(KAI_STALE_SINCE));
        GroupAnnotations { written: read.clone(), read, inherited, ..GroupAnnotations::default() }
            .boxed()
    }

    /// The object was read again. Unless it has changed it is no news: writes of ours may still be
    /// on their way.
    pub(super) fn reread(notes: &mut Option<Box<GroupAnnotations>>, meta: &Meta) {
        let says = Texts::of(meta);
        let mut known = notes.take().map_or_else(GroupAnnotations::default, |notes| *notes);
        if known.read != says {
            known.written = says.clone();
            known.read = says;
        }
        *notes = known.boxed();
    }

    /// Since when the gang was stale before this process started; answered once.
    pub(crate) fn take_inherited(notes: &mut Option<Box<GroupAnnotations>>) -> Option<Time> {
        let mut known = notes.take()?;
        let inherited = known.inherited.take();
        *notes = known.boxed();
        inherited
    }

    /// What must be written so that the object says this; nothing is removed. It counts as written
    /// from now on.
    pub(crate) fn write(
        notes: &mut Option<Box<GroupAnnotations>>,
        wish: Texts,
    ) -> Vec<(&'static str, Option<String>)> {
        let mut known = notes.take().map_or_else(GroupAnnotations::default, |notes| *notes);
        let pairs = wish.by_key().into_iter().zip(known.written.by_key());
        let changes = pairs.filter(|((_, wish), (_, written))| wish != written);
        let changes = changes.map(|((key, wish), _)| (key, wish.clone())).collect();
        known.written = wish;
        *notes = known.boxed();
        changes
    }

    pub(super) fn reserved(&self) -> &[Reservation] {
        &self.reserved
    }

    /// What the object says of reservations.
    pub(crate) fn reservations(&self) -> Option<&str> {
        self.read.reservations.as_deref()
    }

    /// What the object says, or will say once everything planned is written.
    pub(super) fn written(&self) -> [(&'static str, Option<&str>); 2] {
        self.written.by_key().map(|(key, text)| (key, text.as_deref()))
    }

    /// In a box, if there is anything in it.
    fn boxed(self) -> Option<Box<GroupAnnotations>> {
        (self != GroupAnnotations::default()).then(|| Box::new(self))
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
        let mut notes = GroupAnnotations::read(&meta(&[]));
        assert_eq!(notes, None);
        assert_eq!(
            GroupAnnotations::write(&mut notes, since("a")),
            [(STALE_SINCE, Some("a".to_owned()))]
        );
        GroupAnnotations::reread(&mut notes, &meta(&[("theirs", "x")]));
        assert_eq!(GroupAnnotations::write(&mut notes, since("a")), [], "it is on its way");
        GroupAnnotations::reread(&mut notes, &meta(&[(STALE_SINCE, "a")]));
        assert_eq!(GroupAnnotations::write(&mut notes, since("a")), []);
        GroupAnnotations::reread(&mut notes, &meta(&[(STALE_SINCE, "b")]));
        assert_eq!(
            GroupAnnotations::write(&mut notes, since("a")).len(),
            1,
            "another writer has changed it"
        );
        assert_eq!(GroupAnnotations::write(&mut notes, Texts::default()), [(STALE_SINCE, None)]);
        GroupAnnotations::reread(&mut notes, &meta(&[]));
        assert_eq!(GroupAnnotations::write(&mut notes, Texts::default()), []);
        assert_eq!(notes, None, "nothing is kept of a gang without notes");
    }

    #[test]
    fn our_word_goes_before_that_of_another_scheduler() {
        let ours = (STALE_SINCE, "2026-01-05T00:00:00Z");
        let theirs = (KAI_STALE_SINCE, "2026-01-04T00:00:00Z");
        let inherited = |pairs: &[_]| {
            GroupAnnotations::take_inherited(&mut GroupAnnotations::read(&meta(pairs)))
        };
        let time = |(_, text): (&str, &str)| Time::parse(text).ok();
        assert_eq!(inherited(&[ours, theirs]), time(ours));
        assert_eq!(inherited(&[theirs]), time(theirs));
        assert_eq!(inherited(&[(STALE_SINCE, "yesterday"), theirs]), time(theirs));
        assert_eq!(inherited(&[]), None);
    }
}
