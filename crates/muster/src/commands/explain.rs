use crate::failure::Failure;
#[derive(clap::Args)]
pub struct ExplainArgs {}
pub fn run(_: ExplainArgs) -> Result<(), Failure> {
    Ok(())
}
