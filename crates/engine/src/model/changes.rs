//! The log of changed nodes.

use crate::base::ids::NodeId;

/// The changes since a reader last looked. Old entries are cut; a reader that is behind the cut
/// starts over.
#[derive(Clone, Debug, Default)]
pub struct Log {
    nodes: Vec<NodeId>,
    cut: usize,
}

impl Log {
    /// Reading more entries than this costs more than starting over.
    const LIMIT: usize = 1 << 17;

    #[inline]
    pub(super) fn push(&mut self, node: NodeId) {
        self.nodes.push(node);
    }

    pub fn end(&self) -> usize {
        self.cut + self.nodes.len()
    }

    pub fn since(&self, place: usize) -> Option<&[NodeId]> {
        self.nodes.get(place.checked_sub(self.cut)?..)
    }

    pub(super) fn trim(&mut self) {
        if self.nodes.len() > Log::LIMIT {
            self.cut = self.end();
            self.nodes.clear();
        }
    }
}
