//! Typed ids and the tables that only they can index.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Declares `u32` newtypes. An id is a stable slot in its table.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                $name(u32::try_from(index).expect("a table has at most 2^32 rows"))
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> usize {
                id.0 as usize
            }
        }
    )*};
}

ids! {
    NodeId
    /// A domain of the network, numbered depth first.
    DomainId
    PodId
    GangId
    QueueId
    ShapeId
    /// A dimension of room: cpu, memory, pods, an extended resource.
    ResourceId
    /// A rule between pods: which pods, and within which topology key.
    TermId
    /// A label key of nodes that terms count by.
    KeyId
    /// A namespace.
    SpaceId
    /// An interned string.
    Symbol
}

/// One pod is a set of pods.
impl AsRef<[PodId]> for PodId {
    fn as_ref(&self) -> &[PodId] {
        std::slice::from_ref(self)
    }
}

/// A column: a `Vec` that only its own kind of id can index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table<I, T> {
    rows: Vec<T>,
    key: PhantomData<fn(I)>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Table { rows: Vec::new(), key: PhantomData }
    }
}

impl<I: Copy + From<usize> + Into<usize>, T> Table<I, T> {
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::from(self.rows.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.rows.len()).map(I::from)
    }

    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.rows.iter().enumerate().map(|(index, row)| (I::from(index), row))
    }

    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    pub fn rows_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }

    /// Fills up with `row` until the table has `len` rows.
    pub fn grow(&mut self, len: usize, row: T)
    where
        T: Clone,
    {
        if self.rows.len() < len {
            self.rows.resize(len, row);
        }
    }
}

impl<I: Into<usize>, T> Index<I> for Table<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.rows[id.into()]
    }
}

impl<I: Into<usize>, T> IndexMut<I> for Table<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.into()]
    }
}
