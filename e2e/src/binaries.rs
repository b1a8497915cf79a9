//! The servers' binaries: built once from the Go modules in `controlplane/`, kept outside the
//! checkout.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How many lines of a failed build are shown: enough for more than one compiler error.
const SHOWN_OF_ERRORS: usize = 40;

/// The interval between lines of progress.
const BETWEEN_SIGNS: Duration = Duration::from_secs(10);

/// A binary: its name, the folder of its module, its package.
const RECIPES: [(&str, &str, &str); 5] = [
    ("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    ("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
];

/// The module that gives a folder its version.
const VERSIONED: [(&str, &str); 3] = [
    ("kubernetes", "k8s.io/kubernetes "),
    ("etcd", "go.etcd.io/etcd/server/v3 "),
    ("kwok", "sigs.k8s.io/kwok "),
];

/// A folder with all of them.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

#[derive(Clone, Debug)]
pub enum BuildError {
    /// Without Go no control plane can be built, which is no fault of the code under test.
    NoGo(String),
    Failed(String),
}

impl std::error::Error for BuildError {}

impl std::fmt::Display for BuildError {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            BuildError::NoGo(why) => write!(out, "Go is not installed ({why})"),
            BuildError::Failed(why) => write!(out, "building the control plane: {why}"),
        }
    }
}

impl From<std::io::Error> for BuildError {
    fn from(error: std::io::Error) -> BuildError {
        BuildError::Failed(error.to_string())
    }
}

/// The binaries, built at the first call if the cache has none for these modules and this version
/// of Go.
pub fn binaries() -> Result<Binaries, BuildError> {
    static BUILT: OnceLock<Result<Binaries, BuildError>> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> Result<Binaries, BuildError> {
    let go = go_version()?;
    let cache = cache_folder()?;
    let versions =
        VERSIONED.map(|(module, requirement)| Ok((module, version(module, requirement)?)));
    let versions = versions.into_iter().collect::<Result<Vec<_>, BuildError>>()?;
    let named: Vec<String> =
        versions.iter().map(|(module, version)| format!("{module}-{version}")).collect();
    let folder = cache.join(format!("{}-{:016x}", named.join("-"), fingerprint(&go)?));
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        say("waiting for another process that builds the control plane");
        lock.lock()?;
    }
    for (at, (name, module, package)) in RECIPES.iter().enumerate() {
        let target = folder.join(name);
        if !target.exists() {
            let what = format!("building {name} ({} of {}) from Go modules", at + 1, RECIPES.len());
            let partial = folder.join(format!("{name}.partial"));
            compile(&what, module, package, &partial, &link_flags(&versions[0].1))?;
            fs::rename(&partial, &target)?;
        }
    }
    Ok(Binaries { folder })
}

/// Compiles a package, and shows the progress.
fn compile(
    what: &str,
    module: &str,
    package: &str,
    target: &Path,
    link_flags: &str,
) -> Result<(), BuildError> {
    let flags =
        ["build", "-v", "-mod=readonly", "-trimpath", "-ldflags", link_flags, "-o"].map(OsStr::new);
    let mut command = Command::new("go");
    command.current_dir(module_folder(module)).env("CGO_ENABLED", "0");
    command.args(flags).arg(target).arg(package).stderr(Stdio::piped());
    say(what);
    let mut child = command.spawn()?;
    let (mut packages, mut shown, mut last) = (0, Instant::now(), VecDeque::new());
    let lines = child.stderr.take().map(|stderr| BufReader::new(stderr).lines());
    // With -v, go names each package that it has compiled, mixed with errors.
    for line in lines.into_iter().flatten() {
        packages += 1;
        last.extend([line?]);
        if last.len() > SHOWN_OF_ERRORS {
            last.pop_front();
        }
        if shown.elapsed() > BETWEEN_SIGNS {
            say(&format!("{what}: {packages} packages so far"));
            shown = Instant::now();
        }
    }
    if child.wait()?.success() {
        return Ok(());
    }
    let why = Vec::from(last).join("\n");
    Err(BuildError::Failed(format!(
        "go build {package} in {}:\n{why}",
        module_folder(module).display()
    )))
}

/// Written past the test harness, which would keep it until the test ends.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Without a version the API server reports v0.0.0 and clients misbehave. Other modules ignore
/// variables that they don't have.
fn link_flags(kubernetes: &str) -> String {
    let mut numbers = kubernetes.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = "-s -w".to_owned();
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (variable, value) in
            [("gitVersion", &*format!("v{kubernetes}")), ("gitMajor", major), ("gitMinor", minor)]
        {
            flags += &format!(" -X {package}.{variable}={value}");
        }
    }
    flags
}

fn go_version() -> Result<String, BuildError> {
    match Command::new("go").arg("version").output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(BuildError::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(BuildError::NoGo("no `go` in PATH; https://go.dev/doc/install".to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

fn cache_folder() -> Result<PathBuf, BuildError> {
    let from =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("MUSTER_E2E_CACHE")
        .or_else(|| Some(from("XDG_CACHE_HOME")?.join("muster-e2e")))
        .or_else(|| Some(from("HOME")?.join(".cache/muster-e2e")))
        .ok_or_else(|| {
            BuildError::Failed("set MUSTER_E2E_CACHE or HOME: no folder for binaries".to_owned())
        })
}

pub(crate) fn module_folder(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane").join(module)
}

/// The version that a module requires, without the `v`.
fn version(module: &str, requirement: &str) -> Result<String, BuildError> {
    let text = fs::read_to_string(module_folder(module).join("go.mod"))?;
    let found =
        text.lines().find_map(|line| line.trim().strip_prefix(requirement)?.strip_prefix('v'));
    let version = found.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
    version.ok_or_else(|| BuildError::Failed(format!("no {requirement}in go.mod of {module}")))
}

/// Everything that the binaries depend on, as a number (FNV-1a: std's hashes may change with the
/// compiler).
fn fingerprint(go: &str) -> Result<u64, BuildError> {
    let mut bytes = go.as_bytes().to_vec();
    for (module, _) in VERSIONED {
        for file in ["go.mod", "go.sum"] {
            bytes.extend(fs::read(module_folder(module).join(file))?);
        }
    }
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
