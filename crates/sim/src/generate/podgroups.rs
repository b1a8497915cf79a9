//! A gang as manifests: one PodGroup and its pods, as Volcano's job controller or a user would
//! write them.

use std::io::{self, Write};

use muster_api::keys;

use super::gangs::{Gang, Role, Subgroups};
use super::manifest::uid;
use super::tenants::queue_name;

/// Which replica a pod belongs to, as LeaderWorkerSet labels its pods.
const REPLICA_INDEX: &str = "leaderworkerset.sh/group-index";
const REPLICA_MEMBER: &str = "leaderworkerset.sh/worker-index";
const REPLICA_SET: &str = "leaderworkerset.sh/name";

/// A gang with what it gets when it is submitted.
pub struct Submitted<'a> {
    pub gang: &'a Gang,
    pub name: String,
    pub namespace: &'a str,
    /// When it arrived.
    pub stamp: &'a str,
    /// The tier of the network domain that must hold all of it.
    pub highest_tier: Option<u32>,
}

impl Submitted<'_> {
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_group(out)?;
        for role in &self.gang.roles {
            (0..role.pods).try_for_each(|index| self.write_pod(role, index, out))?;
        }
        Ok(())
    }

    fn write_group(&self, out: &mut dyn Write) -> io::Result<()> {
        let Submitted { gang, name, namespace, stamp, .. } = self;
        let uid = uid(&["PodGroup", namespace, name]);
        let queue = gang.queue.map_or(keys::DEFAULT_QUEUE.to_owned(), queue_name);
        write!(
            out,
            "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata:\n  name: {name}\n  \
             namespace: {namespace}\n  uid: {uid}\n  creationTimestamp: \"{stamp}\"\nspec:\n  minMember: {}\n  \
             queue: {queue}\n  priorityClassName: {}\n  minResources: {{{}}}\n",
            gang.min_member(),
            gang.priority.name,
            gang.min_resources(),
        )?;
        if gang.roles.len() > 1 {
            writeln!(out, "  minTaskMember:")?;
            for Role { name, min, .. } in &gang.roles {
                writeln!(out, "    {name}: {min}")?;
            }
        }
        match (&gang.subgroups, self.highest_tier) {
            (Some(subgroups), _) => self.write_subgroups(subgroups, out),
            (None, Some(tier)) if gang.pods() > 1 => {
                writeln!(out, "  networkTopology: {{mode: hard, highestTierAllowed: {tier}}}")
            }
            _ => Ok(()),
        }
    }

    /// A replica talks all the time and must stay in one leaf; that all replicas are near is only
    /// better.
    fn write_subgroups(&self, subgroups: &Subgroups, out: &mut dyn Write) -> io::Result<()> {
        let Subgroups { size, min } = subgroups;
        write!(
            out,
            "  networkTopology: {{mode: soft, highestTierAllowed: 2}}\n  subGroupPolicy:\n    - name: replica\n      \
             subGroupSize: {size}\n      minSubGroups: {min}\n      labelSelector: {{matchLabels: {{{REPLICA_SET}: {}}}}}\n      \
             matchLabelKeys: [{REPLICA_INDEX}]\n      networkTopology: {{mode: hard, highestTierAllowed: 1}}\n",
            self.name,
        )
    }

    fn write_pod(&self, role: &Role, index: u64, out: &mut dyn Write) -> io::Result<()> {
        let Submitted { gang, name: group, namespace, stamp, .. } = self;
        let Gang { priority, run_seconds, estimate_seconds, .. } = gang;
        let Role { name: role, request, .. } = role;
        let name = format!("{group}-{role}-{index}");
        let uid = uid(&["Pod", namespace, &name]);
        write!(
            out,
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  uid: {uid}\n  \
             creationTimestamp: \"{stamp}\"\n  labels:\n    {}: {role}\n    {}: \"{index}\"\n",
            keys::TASK_SPEC,
            keys::TASK_INDEX,
        )?;
        if let Some(Subgroups { size, .. }) = gang.subgroups {
            write!(
                out,
                "    {REPLICA_SET}: {group}\n    {REPLICA_INDEX}: \"{}\"\n    {REPLICA_MEMBER}: \"{}\"\n",
                index / size,
                index % size,
            )?;
        }
        // The priority is written out as admission would, so that the file can be scheduled without
        // a server.
        write!(
            out,
            "  annotations:\n    {}: {group}\n    {}: \"{estimate_seconds}s\"\n    {}: \"{run_seconds}s\"\nspec:\n  \
             schedulerName: {}\n  priorityClassName: {}\n  priority: {}\n  restartPolicy: Never\n",
            keys::GROUP_NAME[0],
            keys::RUNNING_ESTIMATE,
            keys::SIMULATED_DURATION,
            keys::SCHEDULER_NAMES[0],
            priority.name,
            priority.value,
        )?;
        if let Some(model) = gang.model.filter(|_| request.gpus > 0) {
            writeln!(out, "  nodeSelector: {{nvidia.com/gpu.product: {model}}}")?;
        }
        write!(
            out,
            "  containers:\n    - name: {role}\n      image: registry.k8s.io/pause:3.10\n      resources:\n        \
             requests: {{{request}}}\n        limits: {{{request}}}\n"
        )
    }
}
