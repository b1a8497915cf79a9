//! The table of Jobs at the end of a run.

use anstyle::Style;
use muster_sim::report::JobLine;

use super::gangs::REASON_LINES;
use super::screen::Screen;
use super::table::{Row, Table};
use super::text::{BAD, BOLD, GOOD, Names, OVER, WAITS, styled};

pub fn lines(jobs: &[JobLine], names: &Names, screen: Screen) -> Vec<String> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let headers =
        ["NAME", "QUEUE", "PHASE", "RETRIES", "PENDING", "RUNNING", "SUCCEEDED", "FAILED"];
    let mut table = Table::new(&headers);
    for job in jobs {
        let row = Row::default()
            .cell(names.short(&job.name))
            .cell(&job.queue)
            .styled(job.phase, style(job.phase))
            .cell(job.retry_count)
            .cell(job.pending)
            .cell(job.running)
            .cell(job.succeeded)
            .cell(job.failed);
        table.push(row.below(reason(job, screen)));
    }
    let mut lines = vec![styled(BOLD, "JOBS")];
    lines.extend(table.lines(screen.end()));
    lines
}

fn reason(job: &JobLine, screen: Screen) -> Vec<String> {
    if job.message.is_empty() {
        return Vec::new();
    }
    let mut lines = screen.beside(4).wrap_within(&job.message, REASON_LINES);
    for (at, line) in lines.iter_mut().enumerate() {
        line.insert_str(0, if at == 0 { "  └ " } else { "    " });
    }
    lines
}

/// Good or bad news, or neither.
pub fn style(phase: &str) -> Style {
    match phase {
        "Running" => GOOD,
        "Completed" => OVER,
        "Failed" | "Terminated" => BAD,
        _ => WAITS,
    }
}
