//! `cargo run -p muster-xtask`: writes the derived files.

use std::{fs, io};

fn main() -> io::Result<()> {
    for file in muster_xtask::derived() {
        fs::write(&file.path, file.text)?;
        println!("wrote {}", file.path.display());
    }
    Ok(())
}
