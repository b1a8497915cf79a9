//! A line that shows the progress of a long run, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use muster_sim::Progress;

pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// `wanted` is false where the output is for programs.
    pub fn new(wanted: bool) -> Bar {
        Bar((wanted && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
                .expect("a fixed template");
            let bar = ProgressBar::new_spinner().with_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        }))
    }

    pub fn show(&self, progress: &Progress) {
        self.say(format!("cycle {}, {}, {} bound", progress.cycle, progress.now, progress.bound));
    }

    pub fn say(&self, text: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(text);
        }
    }

    pub fn done(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
