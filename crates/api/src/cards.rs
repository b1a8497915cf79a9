//! GPUs that pods share, as annotations of nodes and pods describe them. The formats are those of
//! Volcano and its device plugins.

use serde::{Deserialize, Serialize};

/// A card of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Its number on the node, or its uuid.
    pub id: String,
    /// The model, as the device plugin names it.
    pub kind: String,
    /// In MiB.
    pub memory: i64,
    /// How many pods may share it.
    pub pods: i64,
    pub healthy: bool,
}

/// What a container gets of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub id: String,
    /// In MiB.
    pub memory: i64,
    /// In percent.
    pub cores: i64,
}

/// The vendor that Volcano writes between the id and the amounts of a share.
const MAKER: &str = "NVIDIA";

/// Reads `volcano.sh/node-vgpu-register`. Entries that can't be read are skipped.
pub fn registered(text: &str) -> Vec<Card> {
    let card = |text: &str| {
        let mut fields = text.split(',');
        let mut next = || fields.next().map(str::trim);
        let (id, pods, memory, kind, healthy) = (next()?, next()?, next()?, next()?, next()?);
        (!id.is_empty()).then_some(())?;
        Some(Card {
            id: id.to_owned(),
            kind: kind.to_owned(),
            memory: amount(memory)?,
            pods: amount(pods)?,
            healthy: healthy == "true",
        })
    };
    text.split(':').filter_map(card).collect()
}

/// Reads `volcano.sh/vgpu-ids-new`: the shares of each container.
pub fn shares(text: &str) -> Vec<Vec<Share>> {
    let share = |text: &str| {
        let mut fields = text.split(',').map(str::trim);
        let (id, _, memory, cores) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(Share { id: id.to_owned(), memory: amount(memory)?, cores: amount(cores)? })
    };
    text.split(';').map(|container| container.split(':').filter_map(share).collect()).collect()
}

/// Writes what [`shares`] reads.
pub fn write_shares(containers: &[Vec<Share>]) -> String {
    let share = |Share { id, memory, cores }: &Share| format!("{id},{MAKER},{memory},{cores}:");
    let containers = containers.iter().map(|shares| shares.iter().map(share).collect::<String>());
    containers.collect::<Vec<_>>().join(";")
}

/// Reads a list of card numbers, `0,3`. None if one of them isn't a number.
pub fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// Replaces the ids of cards in a text that [`registered`] or [`shares`] reads. Whatever these skip
/// is left out.
pub fn rename(text: &str, mut name: impl FnMut(&mut String)) -> String {
    let mut renamed = String::with_capacity(text.len());
    for piece in text.split_inclusive([':', ';']) {
        match piece.split_once(',') {
            Some((id, rest)) => {
                let mut id = id.to_owned();
                name(&mut id);
                renamed.extend([&id, ",", rest]);
            }
            None => renamed.extend(piece.chars().filter(|char| [':', ';'].contains(char))),
        }
    }
    renamed
}

/// A limit for amounts, so that no sum can overflow.
fn amount(text: &str) -> Option<i64> {
    text.parse().ok().filter(|amount| (0..1 << 40).contains(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_registers_its_cards() {
        let text = "GPU-1,10,32768,NVIDIA-Tesla V100,true,hami-core:GPU-2,4,8192,NVIDIA-T4,false:";
        let card = |id: &str, pods, memory, kind: &str, healthy| Card {
            id: id.to_owned(),
            kind: kind.to_owned(),
            memory,
            pods,
            healthy,
        };
        let cards = [
            card("GPU-1", 10, 32768, "NVIDIA-Tesla V100", true),
            card("GPU-2", 4, 8192, "NVIDIA-T4", false),
        ];
        assert_eq!(registered(text), cards);
        assert_eq!(registered("GPU-1,x,32768,V100,true:,1,2,V100,true:GPU-3,1"), []);
    }

    #[test]
    fn shares_are_read_as_they_are_written() {
        let share = |id: &str, memory, cores| Share { id: id.to_owned(), memory, cores };
        let containers =
            [vec![share("GPU-1", 3000, 50), share("GPU-2", 3000, 50)], vec![share("GPU-1", 1, 0)]];
        let text = "GPU-1,NVIDIA,3000,50:GPU-2,NVIDIA,3000,50:;GPU-1,NVIDIA,1,0:";
        assert_eq!(write_shares(&containers), text);
        assert_eq!(shares(text), containers);
    }

    #[test]
    fn a_list_of_numbers_has_only_numbers() {
        assert_eq!(numbers("0, 3"), Some(vec![0, 3]));
        assert_eq!(numbers("0,x"), None);
        assert_eq!(numbers(""), None);
    }

    #[test]
    fn ids_are_replaced_and_everything_else_is_kept() {
        let upper = |id: &mut String| *id = id.to_uppercase();
        assert_eq!(rename("a,NVIDIA,1,2:;b,NVIDIA,3,4:", upper), "A,NVIDIA,1,2:;B,NVIDIA,3,4:");
    }
}
