//! How a test gets its control plane: few at the same time, logs kept on failure. Where Go is
//! missing, tests are ignored (`build.rs`).

use std::sync::{Condvar, Mutex, PoisonError};

use crate::Result;
use crate::binaries::binaries;
use crate::cluster::Definitions;
use crate::controlplane::{ControlPlane, Options};
use crate::proxy::Proxy;
use crate::scheduler::Scheduler;

/// A configuration in which gangs take room from those of lower priority.
pub const PREEMPTING: &str = r#"
actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: pdb
  - name: predicates
"#;

/// How many control planes one test process runs at a time; each wants a core and 400 MB.
const PLACES: usize = 2;

/// Runs a test on a control plane of its own.
pub fn test(
    options: Options,
    body: impl AsyncFnOnce(&mut ControlPlane) -> Result<()>,
) -> Result<()> {
    let _place = place()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut plane = ControlPlane::start(options).await?;
        let outcome = body(&mut plane).await;
        if outcome.is_err() {
            plane.keep_logs();
        }
        outcome
    })
}

/// The same with our definitions, a proxy, and a scheduler behind it whose journal must replay at
/// the end.
pub fn behind_a_proxy(
    options: Options,
    flags: &[&str],
    body: impl AsyncFnOnce(&mut ControlPlane, &Proxy, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    test(options, async |plane| {
        plane.cluster().install_crds(Definitions::Muster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
        let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
        let flags: Vec<&str> = flags.iter().copied().chain([&*way]).collect();
        let mut scheduler = Scheduler::start(plane, "muster", &flags).await?;
        body(plane, &proxy, &mut scheduler).await?;
        proxy.calm();
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}

/// The same with a configuration, on a cluster whose pods keep running.
pub fn configured(
    config: &str,
    body: impl AsyncFnOnce(&mut ControlPlane, &Proxy, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scheduler.conf");
    std::fs::write(&file, config)?;
    let options = Options { kwok: true, ..Options::default() };
    behind_a_proxy(options, &[&format!("--config={}", file.display())], body)
}

/// Waits until a control plane may run, and builds its servers if need be.
pub fn place() -> Result<Place> {
    binaries()?;
    Ok(Place::take())
}

/// A permit to run a control plane, returned when dropped.
pub struct Place(());

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Place {
    fn take() -> Place {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = FREED
            .wait_while(taken, |taken| *taken >= PLACES)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Place(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
