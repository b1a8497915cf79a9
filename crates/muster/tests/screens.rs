//! The parts of a screen agree with each other and use the width of the terminal. In a pipe nothing
//! is cut.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const NOW: &str = "2026-11-15T00:00:00Z";

/// `muster …` at the root of the repository, in a pipe, with the width in `COLUMNS` if there is
/// one.
fn muster(line: &str, columns: Option<u32>) -> String {
    let mut process = command(line);
    process.envs(columns.map(|columns| ("COLUMNS", columns.to_string())));
    let output = process.output().expect("the binary was built for this test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "muster {line}: {errors}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn command(line: &str) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).env_clear();
    process.args(line.split_whitespace());
    process
}

fn example(command: &str, name: &str, more: &str) -> String {
    let config = format!("--config examples/{name}/scheduler.conf");
    muster(&format!("{command} -f examples/{name} {config} --now {NOW} {more}"), None)
}

fn json(command: &str, name: &str, more: &str) -> Value {
    serde_json::from_str(&example(command, name, &format!("{more} -o json"))).expect("JSON")
}

/// A generated cluster with work, in a folder that is deleted when this is dropped.
struct Generated(tempfile::TempDir);

impl Generated {
    fn new(cluster: &str, workload: &str) -> Generated {
        let folder = tempfile::tempdir().expect("there is room");
        let generated = Generated(folder);
        let write = |file: &str, line: &str| {
            let text = muster(&format!("generate {line}"), None);
            std::fs::write(generated.file(file), text).expect("there is room");
        };
        write("cluster.yaml", &format!("cluster {cluster}"));
        write("work.yaml", &format!("workload {workload}"));
        generated
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn line(&self, command: &str) -> String {
        let (cluster, work) = (self.file("cluster.yaml"), self.file("work.yaml"));
        format!("{command} -f {} -f {} --now {NOW}", cluster.display(), work.display())
    }
}

/// The cells of the rows of a table, by the columns of its header; up to the next empty line.
fn rows(text: &str, first_header: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(first_header));
    let header = lines.next().unwrap_or_else(|| panic!("no table with {first_header} in\n{text}"));
    let mut starts: Vec<usize> = vec![0];
    let spaced: Vec<char> = header.chars().collect();
    for at in 3..spaced.len() {
        if spaced[at] != ' ' && spaced[at - 3..at] == [' ', ' ', ' '] {
            starts.push(at);
        }
    }
    let cells = |line: &str| -> Vec<String> {
        let line: Vec<char> = line.chars().collect();
        let end = |at: usize| starts.get(at + 1).copied().unwrap_or(line.len()).min(line.len());
        let cell = |(at, &start): (usize, &usize)| -> String {
            line[start.min(end(at))..end(at)].iter().collect::<String>().trim().to_owned()
        };
        starts.iter().enumerate().map(cell).collect()
    };
    let names = cells(header);
    let is_row = |line: &&str| !line.starts_with("  ") && !line.contains(" more, ");
    let body = lines.take_while(|line| !line.is_empty()).filter(is_row);
    body.map(|line| names.iter().cloned().zip(cells(line)).collect()).collect()
}

#[track_caller]
fn cell<'r>(row: &'r [(String, String)], column: &str) -> &'r str {
    let found = row.iter().find(|(name, _)| name == column);
    &found.unwrap_or_else(|| panic!("no column {column} in {row:?}")).1
}

/// Text was cut out or off; "… 3 nodes more" is only a count.
fn is_cut(line: &str) -> bool {
    line.contains('…') && !line.contains("more") && !line.contains(" full")
}

#[test]
fn in_a_pipe_nothing_is_cut() {
    let work = Generated::new("--nodes 32 --queues 4", "--gangs 90 --hours 1 --queues 4");
    let lines = [
        work.line("simulate --cycles 3 --events"),
        work.line("simulate -o wide"),
        work.line("topology show --cycles 2"),
        work.line("topology show --cycles 2 -o wide"),
        work.line("fairshare --cycles 2"),
        format!(
            "simulate -f examples/whole-gangs --now {NOW} --config examples/whole-gangs/scheduler.conf"
        ),
    ];
    for line in lines {
        let text = muster(&line, None);
        let cut: Vec<&str> = text.lines().filter(|line| is_cut(line)).collect();
        assert!(cut.is_empty(), "muster {line} cuts {cut:#?}");
        assert!(!text.contains('\x1b'), "no colours in a pipe");
    }
}

#[test]
fn output_uses_wide_terminals_and_fits_narrow_ones() {
    let work = Generated::new("--nodes 32 --queues 4", "--gangs 40 --hours 1 --queues 4");
    let line = work.line("simulate --cycles 3");
    let widest = |columns| {
        let text = muster(&line, columns);
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let (narrow, wide, pipe) = (widest(Some(80)), widest(Some(150)), widest(None));
    assert!(narrow <= 80 && wide <= 150, "{narrow} of 80, {wide} of 150");
    assert!(wide > 100 && pipe > 80, "{wide} of 150, {pipe} in a pipe");
}

/// The terminal itself is asked: no variable says how wide it is.
#[cfg(target_os = "linux")]
#[test]
fn the_width_comes_from_the_terminal() {
    for (columns, fits) in [(200, true), (80, false)] {
        let text = on_terminal(&format!("simulate -f examples/first-gang --now {NOW}"), columns);
        let reason = "only 1 of 3 pods fit; for default/wave-1 0/2 nodes fit: 2 short of nvidia.com/gpu (want 4, best has 0)";
        assert_eq!(text.contains(reason), fits, "{columns} columns:\n{text}");
        let lines = text.lines().map(|line| line.chars().count());
        assert!(lines.max() <= Some(columns.into()), "wider than {columns}:\n{text}");
    }
}

/// The output of the command on a terminal of this many columns, without colours.
#[cfg(target_os = "linux")]
fn on_terminal(line: &str, columns: u16) -> String {
    use std::io::Read;

    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let ours = openpt(flags).expect("there is a terminal");
    unlockpt(&ours).expect("it is ours");
    let theirs = ioctl_tiocgptpeer(&ours, flags).expect("it has another end");
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).expect("it has a size");
    let mut process = command(line);
    process.env("NO_COLOR", "1").stdout(theirs);
    let mut child = process.spawn().expect("the binary was built for this test");
    // This also closes our copy of the other end, so that reading ends when the command does.
    drop(process);
    let mut text = Vec::new();
    // A terminal whose other end is closed answers with an error.
    let _ = std::fs::File::from(ours).read_to_end(&mut text);
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(text).expect("the output is UTF-8").replace('\r', "")
}

/// Queues hold what is in use, without terminating pods, and what is nominated.
#[test]
fn queues_and_the_map_add_up() {
    for (name, used, terminating, nominated) in
        [("gpu-cluster", 24, 12, 20), ("whole-gangs", 64, 16, 16)]
    {
        let text = example("simulate", name, "");
        let changing = format!("({terminating} terminating, +{nominated} nominated)");
        let title = text.lines().find(|line| line.starts_with("MAP")).expect("there is a map");
        assert!(title.starts_with(&format!("MAP   {used} of ")), "{name}: {title}");
        assert!(title.contains(&changing), "{name}: {title}");
        let report = json("simulate", name, "");
        let queues = report["queues"].as_array().expect("a list");
        let sum = |key: &str| -> u64 {
            let leaves = queues.iter().filter(|queue| queue["name"] != "root");
            let amounts = leaves.filter_map(|queue| queue[key]["nvidia.com/gpu"].as_str());
            amounts.map(|amount| amount.parse::<u64>().expect("a number")).sum()
        };
        assert_eq!(sum("nominated"), nominated, "{name}");
        assert_eq!(sum("allocated"), used - terminating + nominated, "{name}");
        let queues = text.split("QUEUES\n").nth(1).expect("there are queues");
        let shown = rows(queues, "NAME").into_iter().map(|row| {
            let amount = cell(&row, "OF IT NOMINATED").split(' ').next().map(str::to_owned);
            amount.and_then(|amount| amount.parse::<u64>().ok()).unwrap_or(0)
        });
        assert_eq!(shown.sum::<u64>(), nominated, "{name}:\n{text}");
    }
}

#[test]
fn an_evicted_gang_shows_its_terminating_pods() {
    let text = example("simulate", "whole-gangs", "");
    let gangs = rows(&text, "NAME");
    let ring = gangs.iter().find(|row| cell(row, "NAME") == "ring").expect("it is in the example");
    let counts = ["RUNNING", "PENDING", "TERMINATING"].map(|column| cell(ring, column));
    assert_eq!(counts, ["0", "0", "4"]);
    let report = json("simulate", "whole-gangs", "");
    let gangs = report["gangs"].as_array().expect("a list");
    let ring = gangs.iter().find(|gang| gang["name"] == "default/ring").expect("as above");
    assert_eq!(ring["terminating"], 4);
    let told = example("explain gang/ring", "whole-gangs", "");
    assert!(told.contains("0 running, 0 pending, 4 terminating"), "{told}");
}

#[test]
fn cards_that_pods_share_are_in_use() {
    let text = example("simulate", "shared-gpus", "");
    assert!(text.contains("MAP   16,000 of 16,000 volcano.sh/gpu-memory"), "{text}");
    assert!(!text.contains("gpu-number"), "no whole card is in use, and none is free:\n{text}");
    assert!(text.contains("gpu-1 aaaabbbbiiiiiiii"), "{text}");
}

#[test]
fn a_pod_without_a_pod_group_is_explained_as_the_gang_that_the_table_shows() {
    let pod = example("explain pod/model", "shared-gpus", "");
    for name in ["gang/model", "gang/default/model", "pg/model", "model"] {
        assert_eq!(example(&format!("explain {name}"), "shared-gpus", ""), pod, "{name}");
    }
}

#[test]
fn a_share_says_what_it_is_a_share_of() {
    for (name, of, key) in [
        ("fairshare", "% of deserved", "deserved"),
        ("gpu-cluster", "% of fair share", "fairShare"),
        ("whole-gangs", "% of cluster", "cluster"),
    ] {
        let text = example("simulate", name, "");
        assert!(text.contains(of), "{name}: {of} is not in\n{text}");
        let report = json("simulate", name, "");
        let queues = report["queues"].as_array().expect("a list");
        assert!(queues.iter().any(|queue| queue["shareOf"] == key), "{name}: {queues:?}");
    }
    let shares = example("fairshare", "fairshare", "--resource nvidia.com/gpu");
    let queues = rows(&shares, "QUEUE");
    let nightly = queues.iter().find(|row| cell(row, "QUEUE") == "product").expect("it is there");
    assert_eq!([cell(nightly, "FAIR SHARE"), cell(nightly, "STANDING")], ["5", "7 over"]);
}

#[test]
fn amounts_of_a_large_cluster_are_readable() {
    let work = Generated::new("--nodes 64 --queues 4", "--gangs 300 --hours 1 --queues 4");
    let text = muster(&work.line("fairshare"), None);
    let thousandths = text.split_whitespace().filter(|word| {
        let digits = word.strip_suffix('m').unwrap_or_default();
        digits.len() > 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    assert_eq!(thousandths.collect::<Vec<_>>(), [] as [&str; 0], "{text}");
    for row in rows(&text, "QUEUE") {
        assert!(
            !cell(&row, "FAIR SHARE").contains([' ', ',']) || cell(&row, "FAIR SHARE").len() > 4
        );
        let standing = cell(&row, "STANDING");
        assert!(["over", "below", "even"].iter().any(|end| standing.ends_with(end)), "{row:?}");
    }
}
