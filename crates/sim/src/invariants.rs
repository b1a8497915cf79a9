//! What is always true (DESIGN §10), checked from the engine's model after a cycle.

use muster_engine::ids::{GangId, ResourceId};
use muster_engine::{Engine, Plan};

/// Checks the model and the plan that was just made. The error names what does not hold.
pub fn check(engine: &Engine, plan: &Plan) -> Result<(), String> {
    engine.cluster().audit()?;
    no_node_is_over(engine, plan)?;
    no_gang_is_half_placed(engine, plan)
}

/// Our plan never puts a node over its allocatable, in any dimension.
fn no_node_is_over(engine: &Engine, plan: &Plan) -> Result<(), String> {
    let cluster = engine.cluster();
    for bind in &plan.binds {
        for resource in (0..cluster.dimensions.len()).map(ResourceId::from) {
            let wants = cluster.request_of(cluster.pods.shape[bind.pod], resource) > 0;
            if wants && cluster.nodes.idle[resource][bind.node] < 0 {
                return Err(format!(
                    "binding {} puts {} over its {}",
                    cluster.pods.name(bind.pod),
                    cluster.nodes.name[bind.node],
                    cluster.dimensions.name(resource)
                ));
            }
        }
    }
    for bind in &plan.nominations {
        for resource in (0..cluster.dimensions.len()).map(ResourceId::from) {
            let wants = cluster.request_of(cluster.pods.shape[bind.pod], resource) > 0;
            if wants && cluster.nodes.future_idle(resource, bind.node) < 0 {
                return Err(format!("{} is promised more than it will have", cluster.nodes.name[bind.node]));
            }
        }
    }
    Ok(())
}

/// Our plan never binds a gang below its minimum, nor a role.
fn no_gang_is_half_placed(engine: &Engine, plan: &Plan) -> Result<(), String> {
    let cluster = engine.cluster();
    if !engine.policy().gangs_are_whole() {
        return Ok(());
    }
    let mut bound: Vec<GangId> = plan.binds.iter().filter_map(|bind| cluster.pods.gang[bind.pod]).collect();
    bound.sort_unstable();
    bound.dedup();
    for gang in bound {
        let gang = &cluster.gangs[gang];
        let missing = gang.missing(true);
        if missing.total > 0 {
            return Err(format!("{} is bound with {} pods missing to its minimum", gang.key, missing.total));
        }
    }
    Ok(())
}
