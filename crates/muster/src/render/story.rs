use crate::failure::Failure;
use muster_sim::Simulation;
pub fn print(_: &Simulation, _: bool) -> Result<(), Failure> {
    Ok(())
}
