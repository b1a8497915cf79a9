//! Servers that end with the process that started them, however that ends.
//!
//! A server is started by a small process of this crate's own binary, the guard, that waits for the
//! end of its standard input. This process holds the other end of the pipe, so the kernel closes it
//! when the process dies, even by SIGKILL; then the guard ends the server. Both have process groups
//! of their own: a Ctrl-C in the terminal reaches only the harness.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::Result;

/// How long a server may take to end after SIGTERM before its guard kills it.
const GRACE: Duration = Duration::from_secs(5);
/// How long `stop` waits for a clean end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that can be started, stopped, killed and frozen, again and again.
pub struct Server {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    /// Removed by the guard if this process no longer exists.
    remove: Option<PathBuf>,
    process: Option<Process>,
}

struct Process {
    guard: Child,
    lifeline: ChildStdin,
    pid: Pid,
}

impl Server {
    /// A server that is not started yet; its output is appended to `folder/name.log`.
    pub fn new(name: &str, program: &Path, arguments: Vec<String>, folder: &Path) -> Server {
        Server {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            log: folder.join(format!("{name}.log")),
            remove: None,
            process: None,
        }
    }

    /// A folder that is removed when both the server and this process have ended.
    pub fn removing(mut self, folder: &Path) -> Server {
        self.remove = Some(folder.to_owned());
        self
    }

    pub fn start(&mut self) -> Result<()> {
        assert!(!self.is_running(), "{} is already running", self.name);
        let mut command = Command::new(guard_binary()?);
        command.arg("guard").arg("--log").arg(&self.log);
        if let Some(folder) = &self.remove {
            command.arg("--remove").arg(folder);
        }
        command.arg("--").arg(&self.program).args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut guard = command
            .spawn()
            .map_err(|error| format!("starting a guard for {}: {error}", self.name))?;
        let lifeline = guard.stdin.take().expect("the guard's input is a pipe");
        let mut line = String::new();
        BufReader::new(guard.stdout.take().expect("the guard's output is a pipe"))
            .read_line(&mut line)?;
        match line.trim().parse().ok().and_then(Pid::from_raw) {
            Some(pid) => self.process = Some(Process { guard, lifeline, pid }),
            None => return Err(format!("starting {}: {}", self.name, line.trim()).into()),
        }
        Ok(())
    }

    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(|process| process.pid.as_raw_pid())
    }

    pub fn is_running(&mut self) -> bool {
        self.exit_status().is_none() && self.process.is_some()
    }

    /// How the server ended, if it was started and has ended.
    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.as_mut().and_then(|process| process.guard.try_wait().ok().flatten())
    }

    /// An error with the end of the log if the server has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.exit_status() {
            None => Ok(()),
            Some(status) => {
                Err(format!("{} ended ({status}):\n{}", self.name, self.log_end()).into())
            }
        }
    }

    /// The last lines of the log.
    pub fn log_end(&self) -> String {
        let text = fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!(
            "{}\n(in {})",
            lines[lines.len().saturating_sub(15)..].join("\n"),
            self.log.display()
        )
    }

    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        let running = self.is_running();
        let process = self.process.as_ref().filter(|_| running);
        let process = process.ok_or_else(|| format!("{} does not run", self.name))?;
        kill_process(process.pid, signal)
            .map_err(|error| format!("{signal:?} to {}: {error}", self.name).into())
    }

    /// Freezes the server.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks the server to end (SIGTERM) and waits for it; returns its exit code, 128 + n for signal
    /// n.
    pub async fn stop(&mut self) -> Result<i32> {
        self.signal(Signal::TERM)?;
        self.ended(PATIENCE).await
    }

    /// Kills the server (SIGKILL) and waits until it is gone.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.ended(PATIENCE).await.map(|_| ())
    }

    /// Waits until the server has ended; returns its exit code, 128 + n for signal n.
    pub async fn ended(&mut self, timeout: Duration) -> Result<i32> {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if let Some(status) = self.exit_status() {
                self.process = None;
                return Ok(code(status));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err(format!("{} did not end within {timeout:?}:\n{}", self.name, self.log_end()).into())
    }

    /// Kills the server at once and waits until it is gone; nothing happens if it does not run.
    pub fn end(&mut self) {
        let _ = self.signal(Signal::KILL);
        self.release();
    }

    /// Closes the guard's input; the guard then ends the server if it still runs.
    fn release(&mut self) {
        if let Some(Process { mut guard, lifeline, .. }) = self.process.take() {
            drop(lifeline);
            let _ = guard.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.release();
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// This crate's binary: the running program, or the one next to the running tests.
fn guard_binary() -> Result<PathBuf> {
    let running = std::env::current_exe()?;
    let name = "muster-e2e";
    if running.file_stem().is_some_and(|stem| stem == name) {
        return Ok(running);
    }
    let beside = crate::scheduler::profile_folder()?.join(name);
    if beside.exists() {
        Ok(beside)
    } else {
        Err(format!("{} is not built", beside.display()).into())
    }
}

/// The guard's side: starts the command, prints its process id, and ends it at the end of standard
/// input. Returns the exit code of the command.
pub fn guard(log: &Path, remove: Option<&Path>, command: &[String]) -> i32 {
    let mut child = match start(log, command) {
        Ok(child) => child,
        Err(error) => {
            let _ = writeln!(std::io::stdout(), "{error}");
            return 127;
        }
    };
    let pid = Pid::from_child(&child);
    let (send, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        // A frozen process would not receive SIGTERM.
        let _ = kill_process_group(pid, Signal::TERM);
        let _ = kill_process_group(pid, Signal::CONT);
        let _ = send.send(());
        std::thread::sleep(GRACE);
        let _ = kill_process_group(pid, Signal::KILL);
    });
    // The harness may be gone already; the child is watched anyway.
    let _ = writeln!(std::io::stdout(), "{}", pid.as_raw_pid());
    let status = child.wait();
    if ended.try_recv().is_ok()
        && let Some(folder) = remove
    {
        let _ = fs::remove_dir_all(folder);
    }
    status.map_or(127, code)
}

fn start(log: &Path, command: &[String]) -> std::io::Result<Child> {
    let (program, arguments) =
        command.split_first().expect("the argument parser asks for a command");
    let output = File::options().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    command.process_group(0).spawn()
}
