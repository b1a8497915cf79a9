//! GPUs that pods share: each pod finds a card that has room for it, not only a node.

use crate::base::ids::{NodeId, ShapeId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::devices::cards::{Card, Cards};
use crate::model::devices::{By, Prefer, Sharing, Slot};
use crate::policy::plugin::{Entry, Plugin, Scope, answers};
use crate::settings::args::Args;
use crate::settings::argument::Argument;

const MEMORY: &str = "deviceshare.GPUSharingEnable";
const NUMBER: &str = "deviceshare.GPUNumberEnable";
const VIRTUAL: &str = "deviceshare.VGPUEnable";
const POLICY: &str = "deviceshare.SchedulePolicy";

pub static ENTRY: Entry = Entry {
    name: "deviceshare",
    summary: "pods share GPUs: by memory, by number, or as virtual GPUs; a pod fits a node only \
              if it fits a card",
    arguments: &[
        Argument {
            name: MEMORY,
            default: "false",
            meaning: "a pod that asks for volcano.sh/gpu-memory gets it on one card; a node has \
                      volcano.sh/gpu-number cards of equal size",
        },
        Argument {
            name: NUMBER,
            default: "false",
            meaning: "a pod that asks for volcano.sh/gpu-number gets cards that no other pod \
                      uses; not with GPUSharingEnable",
        },
        Argument {
            name: VIRTUAL,
            default: "false",
            meaning: "containers get volcano.sh/vgpu-number cards with vgpu-memory or \
                      vgpu-memory-percentage and vgpu-cores of each; not with the other two",
        },
        Argument {
            name: POLICY,
            default: "binpack",
            meaning: "binpack takes the fullest card that has room, spread the emptiest; nodes \
                      are scored the same way",
        },
        Argument {
            name: "deviceshare.ScheduleWeight",
            default: "0",
            meaning: "weight of the score, 0 turns it off",
        },
        Argument {
            name: "deviceshare.NodeLockEnable",
            default: "false",
            meaning: "without effect: one scheduler decides, so nodes need no lock",
        },
        Argument {
            name: "deviceshare.AscendMindClusterVNPUEnable",
            default: "false",
            meaning: "without effect: not built, such resources are plain numbers",
        },
        Argument {
            name: "deviceshare.AscendHAMiVNPUEnable",
            default: "false",
            meaning: "without effect: not built, such resources are plain numbers",
        },
        Argument {
            name: "deviceshare.KnownGeometriesCMName",
            default: "volcano-vgpu-device-config",
            meaning: "without effect: cards in mig mode are shared by memory and cores like others",
        },
        Argument {
            name: "deviceshare.KnownGeometriesCMNamespace",
            default: "kube-system",
            meaning: "without effect, like KnownGeometriesCMName",
        },
        Argument {
            name: "deviceshare.GPUExclusiveRules",
            default: "",
            meaning: "without effect: not built",
        },
    ],
    differs: "The card is decided with the node and stays the pod's until it is gone: a simulated \
              eviction that is undone never moves a pod to another card. Unhealthy cards take no \
              pods. The score of several cards is their average, and GPUs that are shared by \
              memory have one too.",
    build: |args, _| Box::new(DeviceShare::new(args)),
};

struct DeviceShare {
    sharing: Option<Sharing>,
    weight: i64,
}

impl DeviceShare {
    fn new(args: &mut Args) -> DeviceShare {
        let prefer = match args.words(POLICY).as_slice() {
            [] => Prefer::Fullest,
            [word] if word == "binpack" => Prefer::Fullest,
            [word] if word == "spread" => Prefer::Emptiest,
            words => {
                let message = format!("expected binpack or spread, found {}", words.join(", "));
                args.problem(POLICY, message, String::new());
                Prefer::Fullest
            }
        };
        let ways = [(MEMORY, By::Memory), (NUMBER, By::Number), (VIRTUAL, By::Virtual)];
        let chosen: Vec<(&str, By)> =
            ways.into_iter().filter(|(key, _)| args.bool(key, false)).collect();
        if let [(first, _), (second, _), ..] = chosen[..] {
            args.problem(
                second,
                format!("{first} is there too, and cards are shared in one way only"),
                String::new(),
            );
        }
        let sharing = chosen.first().map(|&(_, by)| Sharing { by, prefer });
        DeviceShare { sharing, weight: args.weight("deviceshare.ScheduleWeight", 0) }
    }
}

#[answers]
impl Plugin for DeviceShare {
    fn sharing(&self) -> Option<Sharing> {
        self.sharing
    }

    fn score(
        &self,
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        let (Scope::NodePods, Some(demand)) = (reach, cluster.demand(shape)) else { return };
        if self.weight == 0 {
            return;
        }
        let prefer = cluster.devices.prefer();
        for (&node, score) in nodes.iter().zip(scores) {
            let Some(cards) = cluster.devices.cards(node) else { continue };
            let chosen = cards.choose(demand, Room::Backfill, prefer);
            let chosen = chosen
                .or_else(|| cards.choose(demand, Room::FutureIdle, prefer))
                .unwrap_or_default();
            let points: i64 = chosen.iter().filter_map(|slot| points(cards, slot, prefer)).sum();
            *score += self.weight * points.checked_div(chosen.len() as i64).unwrap_or(0);
        }
    }
}

/// Up to 100 points in thousandths: how full the card will be, or whether it is unused.
fn points(cards: &Cards, slot: &Slot, prefer: Prefer) -> Option<i64> {
    let Card { fact, used, .. } = cards.get(slot.card)?;
    match prefer {
        Prefer::Fullest => {
            let full = i128::from(used.memory + slot.takes.memory) * 100_000;
            full.checked_div(i128::from(fact.memory)).map(|points| points as i64)
        }
        Prefer::Emptiest => Some(if used.pods == 0 { 100_000 } else { 0 }),
    }
}
