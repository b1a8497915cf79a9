//! The contents of files and a configuration, and everything that is wrong with them.

use muster_api::Time;
use muster_engine::config::{Class, Config, Diagnostic};
use muster_journal::Configuration;
use muster_sim::World;

use super::{Collection, ConfigArgs, InputError, Remark, files};
use crate::failure::Failure;

pub struct Reading {
    pub collection: Collection,
    /// The manifests of `--what-if`.
    extra: Collection,
    /// `None` if it has errors.
    config: Option<(Config, Configuration)>,
    /// About the configuration.
    remarks: Vec<Remark>,
    pub errors: Vec<InputError>,
    reads_standard_input: bool,
}

/// Everything that was read without an error.
pub struct Loaded {
    pub collection: Collection,
    /// The manifests of `--what-if`.
    pub extra: Collection,
    pub config: Config,
    /// The configuration as it was read, for another scheduler or after a restart.
    pub text: Configuration,
    remarks: Vec<Remark>,
}

impl Reading {
    /// Reads the files and the configuration to the end, whatever errors they have.
    pub fn of(files: &[String], config: &ConfigArgs) -> Reading {
        let mut collection = Collection::default();
        let errors = files::read(files, &mut collection);
        let mut reading = Reading {
            collection,
            extra: Collection::default(),
            config: None,
            remarks: Vec::new(),
            errors,
            reads_standard_input: files.iter().any(is_stream),
        };
        if config.is_stream() && reading.reads_standard_input {
            reading.errors.push(InputError::StandardInputTwice);
            return reading;
        }
        reading.reads_standard_input |= config.is_stream();
        match config.text() {
            Ok(text) => reading.configure(text),
            Err(error) => reading.errors.push(error),
        }
        reading
    }

    fn configure(&mut self, text: Configuration) {
        let mut warnings = Vec::new();
        match Config::parse_with(&text.name, &text.text, &mut warnings) {
            Ok(config) => self.config = Some((config, text)),
            Err(found) => self.errors.extend(found.into_iter().map(InputError::Config)),
        }
        let remark = |found: &Diagnostic| match found.class {
            Class::Advice => Remark::note(found.to_string()),
            Class::Error | Class::Warning => Remark::warning(found.to_string()),
        };
        self.remarks = warnings.iter().map(remark).collect();
    }

    /// Reads the manifests of `--what-if` after the files.
    pub fn with_extra(mut self, more: &[String]) -> Reading {
        let mut more: Vec<&String> = more.iter().collect();
        if self.reads_standard_input && more.iter().any(|name| is_stream(name)) {
            self.errors.push(InputError::StandardInputTwice);
            more.retain(|name| !is_stream(name));
        }
        self.errors.extend(files::read(more, &mut self.extra));
        self
    }

    /// Warnings and notes.
    pub fn remarks(&self) -> Vec<Remark> {
        [self.remarks.clone(), self.collection.remarks(), self.extra.remarks()].concat()
    }

    /// Fails if there is any error.
    pub fn finish(self) -> Result<Loaded, Failure> {
        match self {
            Reading {
                collection, extra, config: Some((config, text)), remarks, errors, ..
            } if errors.is_empty() => Ok(Loaded { collection, extra, config, text, remarks }),
            reading => Err(Failure::Read {
                remarks: reading.remarks(),
                problems: reading.errors.iter().map(ToString::to_string).collect(),
            }),
        }
    }
}

impl Loaded {
    fn remarks(&self) -> Vec<Remark> {
        [self.remarks.clone(), self.collection.remarks(), self.extra.remarks()].concat()
    }

    /// Prints the warnings and notes.
    pub fn say_remarks(&self) {
        self.remarks().iter().for_each(Remark::say);
    }

    /// The input was read but cannot be used.
    pub fn refuse(&self, problem: &InputError) -> Failure {
        Failure::Read { remarks: self.remarks(), problems: vec![problem.to_string()] }
    }

    /// The embedded cluster with everything that was read.
    pub fn world(self, now: Time) -> (World, Config) {
        let mut world = World::at(now);
        self.collection.objects.into_iter().for_each(|object| world.insert(object));
        (world, self.config)
    }
}

/// The configuration of a text that was read without errors before.
pub fn parse_again(text: &Configuration) -> Config {
    Config::parse(&text.name, &text.text).expect("it was read without errors before")
}

fn is_stream(name: &String) -> bool {
    name == "-"
}
