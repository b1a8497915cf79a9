//! `muster completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "Example:\n  source <(muster completions bash)")]
pub struct CompletionsArgs {
    shell: Shell,
}

pub fn run<C: CommandFactory>(args: CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "muster", &mut text);
    Ok(std::io::Write::write_all(&mut std::io::stdout(), &text)?)
}
