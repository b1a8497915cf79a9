//! `cargo bench`: the figures of `muster bench`, in a process of their own.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() {
    // `cargo test --benches` runs it too, to see that it works: one round is enough for that.
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let rounds = if measuring { 9 } else { 1 };
    let figures = muster_bench::speed::run(rounds, &|| Some(ALLOCATED.current_usage()), |what| {
        eprintln!("measuring: {what}");
    });
    print!("{figures}");
}
