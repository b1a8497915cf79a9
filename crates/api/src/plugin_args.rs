//! The arguments of job plugins, written like flags of Go programs: `--port=22`, `--port 22`,
//! `-port=22`; a switch is `--wait` or `--wait=true`.

use std::collections::BTreeMap;

/// What a flag takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    Text,
    Number,
    Switch,
}

/// A flag of a plugin and its default.
type Flag = (&'static str, Takes, &'static str);

/// Every job plugin with its flags.
pub const JOB_PLUGINS: [(&str, &[Flag]); 8] = [
    ("env", &[]),
    ("hcclrank", &[("master", Takes::Text, "master"), ("worker", Takes::Text, "worker")]),
    (
        "mpi",
        &[
            ("master", Takes::Text, "master"),
            ("worker", Takes::Text, "worker"),
            ("port", Takes::Number, "22"),
        ],
    ),
    (
        "pytorch",
        &[
            ("master", Takes::Text, "master"),
            ("worker", Takes::Text, "worker"),
            ("port", Takes::Number, "23456"),
            ("wait-master-enabled", Takes::Switch, "false"),
            ("wait-master-timeout", Takes::Number, "300"),
            ("wait-master-image", Takes::Text, "busybox:1.36.1"),
        ],
    ),
    (
        "ray",
        &[
            ("head", Takes::Text, "head"),
            ("headContainer", Takes::Text, "head"),
            ("worker", Takes::Text, "worker"),
            ("workerContainer", Takes::Text, "worker"),
            ("port", Takes::Number, "6379"),
            ("dashboardPort", Takes::Number, "8265"),
            ("clientPort", Takes::Number, "10001"),
        ],
    ),
    (
        "ssh",
        &[
            ("ssh-key-file-path", Takes::Text, "/root/.ssh"),
            ("ssh-private-key", Takes::Text, ""),
            ("ssh-public-key", Takes::Text, ""),
            ("ssh-port", Takes::Number, "22"),
            ("ssh-key-type", Takes::Text, "ed25519"),
        ],
    ),
    (
        "svc",
        &[
            ("publish-not-ready-addresses", Takes::Switch, "false"),
            ("disable-network-policy", Takes::Switch, "false"),
            ("inject-hosts-env", Takes::Switch, "true"),
        ],
    ),
    (
        "tensorflow",
        &[
            ("ps", Takes::Text, "ps"),
            ("worker", Takes::Text, "worker"),
            ("chief", Takes::Text, "chief"),
            ("evaluator", Takes::Text, "evaluator"),
            ("port", Takes::Number, "2222"),
        ],
    ),
];

/// The arguments of one plugin: what is written, and defaults for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginArgs(BTreeMap<&'static str, String>);

impl PluginArgs {
    /// Reads the arguments of a plugin. What is wrong with them is said besides; such an argument
    /// has its default.
    pub fn read(plugin: &str, written: &[String]) -> (PluginArgs, Vec<String>) {
        let flags =
            JOB_PLUGINS.iter().find(|(name, _)| *name == plugin).map_or(&[][..], |row| row.1);
        let mut args = PluginArgs::default();
        args.0.extend(flags.iter().map(|(name, _, default)| (*name, (*default).to_owned())));
        let mut wrong = Vec::new();
        // "--a b" may be written as one argument or as two.
        let mut words = written.iter().flat_map(|text| match text.split_once('=') {
            Some(_) => vec![text.as_str()],
            None => text.split_whitespace().collect(),
        });
        while let Some(word) = words.next() {
            let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
            let Some(bare) = bare else {
                wrong.push(format!("{word:?} is no argument; write --NAME=VALUE"));
                continue;
            };
            let (name, value) = match bare.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (bare, None),
            };
            let Some((name, takes, _)) = flags.iter().find(|(flag, _, _)| *flag == name) else {
                let known: Vec<String> =
                    flags.iter().map(|(flag, _, _)| format!("--{flag}")).collect();
                let known = match known.is_empty() {
                    true => format!("{plugin} takes no arguments"),
                    false => format!("write one of {}", known.join(", ")),
                };
                wrong.push(format!("--{name} is not known; {known}"));
                continue;
            };
            let value = match (takes, value) {
                (_, Some(value)) => value,
                (Takes::Switch, None) => "true",
                (_, None) => words.next().unwrap_or_default(),
            };
            match problem(plugin, name, *takes, value) {
                Some(problem) => wrong.push(problem),
                None => drop(args.0.insert(name, value.to_owned())),
            }
        }
        (args, wrong)
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or_default()
    }

    pub fn switch(&self, name: &str) -> bool {
        is_true(self.text(name)) == Some(true)
    }
}

/// As Go reads switches.
fn is_true(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn problem(plugin: &str, name: &str, takes: Takes, value: &str) -> Option<String> {
    let is_port = name.to_ascii_lowercase().ends_with("port");
    match takes {
        Takes::Number if is_port => {
            let good = value.parse::<i64>().is_ok_and(|port| (1..=65_535).contains(&port));
            (!good)
                .then(|| format!("--{name}: {value:?} is no port; write a number from 1 to 65535"))
        }
        Takes::Number => {
            let good = value.parse::<i64>().is_ok_and(|number| number >= 0);
            (!good).then(|| format!("--{name}: {value:?} is no number; write 0 or more"))
        }
        Takes::Switch => {
            let good = is_true(value).is_some();
            (!good).then(|| format!("--{name}: {value:?} is no switch; write true or false"))
        }
        Takes::Text if plugin == "ssh" && name == "ssh-key-type" => {
            let good = ["ed25519", "rsa"].contains(&value);
            (!good).then(|| format!("--{name}: {value:?} is not known; write ed25519 or rsa"))
        }
        Takes::Text => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(plugin: &str, written: &[&str]) -> (PluginArgs, Vec<String>) {
        let written: Vec<String> = written.iter().map(ToString::to_string).collect();
        PluginArgs::read(plugin, &written)
    }

    #[test]
    fn arguments_are_read_as_go_reads_flags() {
        for written in
            [&["--port=2300"][..], &["-port=2300"], &["--port 2300"], &["--port", "2300"]]
        {
            let (args, wrong) = read("pytorch", written);
            assert_eq!(
                (args.number("port"), args.text("master"), wrong.len()),
                (2300, "master", 0)
            );
        }
        let (args, _) = read("svc", &["--publish-not-ready-addresses", "--inject-hosts-env=f"]);
        assert!(args.switch("publish-not-ready-addresses") && !args.switch("inject-hosts-env"));
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let (args, wrong) = read("mpi", &["--port=0", "--mater=x", "hello"]);
        assert_eq!(args.number("port"), 22);
        assert_eq!(
            wrong,
            [
                "--port: \"0\" is no port; write a number from 1 to 65535",
                "--mater is not known; write one of --master, --worker, --port",
                "\"hello\" is no argument; write --NAME=VALUE",
            ]
        );
        assert_eq!(read("env", &["--x"]).1, ["--x is not known; env takes no arguments"]);
        assert_eq!(read("ssh", &["--ssh-key-type=dsa"]).1.len(), 1);
    }
}
