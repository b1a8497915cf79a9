//! Where commands write manifests, and in which format: `-o` is a format and `--to` a file, in all
//! commands.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use muster_api::manifest::{Object, document};
use thiserror::Error;

use crate::failure::Failure;
use crate::terminal;

#[derive(Args, Clone, Debug)]
pub struct ManifestArgs {
    /// The format of the manifests
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = OutputParser)]
    output: Output,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
}

/// The value of `-o`.
#[derive(Clone, Debug)]
enum Output {
    Format(Format),
    /// A file, which `-o` meant in earlier versions.
    File(PathBuf),
}

/// The manifests could not be written.
#[derive(Debug, Error)]
#[error("writing {}: {source}", to.display())]
pub struct WriteError {
    pub to: PathBuf,
    pub source: io::Error,
}

impl ManifestArgs {
    pub fn format(&self) -> Format {
        match self.output {
            Output::Format(format) => format,
            Output::File(_) => Format::Yaml,
        }
    }

    /// The file to write to; `None` is the standard output.
    pub fn file(&self) -> Option<&Path> {
        let file = match &self.output {
            Output::File(file) => Some(file),
            Output::Format(_) => self.to.as_ref(),
        };
        file.map(PathBuf::as_path).filter(|file| *file != Path::new("-"))
    }

    /// Warns that `-o` with a file is an old form.
    pub fn check(&self) -> Result<(), Failure> {
        let Output::File(file) = &self.output else { return Ok(()) };
        let file = file.display();
        match &self.to {
            Some(to) => {
                let to = to.display();
                Err(Failure::input(format_args!(
                    "-o {file} is no format; write -o yaml or -o json beside --to {to}"
                )))
            }
            None => {
                terminal::warn(format_args!(
                    "-o {file} is no format, yaml or json, and was taken as a file: write --to {file}"
                ));
                Ok(())
            }
        }
    }

    /// Writes to the file or the standard output.
    pub fn write(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let filled = |out: &mut dyn Write| {
            let mut out = BufWriter::with_capacity(1 << 16, out);
            fill(&mut out)?;
            out.flush()
        };
        match self.file() {
            Some(path) => File::create(path)
                .and_then(|mut file| filled(&mut file))
                .map_err(|source| Failure::work(WriteError { to: path.into(), source })),
            None => Ok(filled(&mut io::stdout().lock())?),
        }
    }
}

/// Writes objects as one list, which kubectl and muster read, without holding it in memory.
pub struct JsonList<W> {
    out: W,
    is_empty: bool,
}

impl<W: Write> JsonList<W> {
    pub fn begin(mut out: W) -> io::Result<JsonList<W>> {
        write!(out, "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
        Ok(JsonList { out, is_empty: true })
    }

    pub fn add(&mut self, object: &Object) -> io::Result<()> {
        let separator = if self.is_empty { "\n" } else { ",\n" };
        self.is_empty = false;
        self.out.write_all(separator.as_bytes())?;
        Ok(serde_json::to_writer(&mut self.out, &document(object)?)?)
    }

    pub fn end(mut self) -> io::Result<()> {
        writeln!(self.out, "\n]}}")
    }
}

#[derive(Clone)]
struct OutputParser;

impl TypedValueParser for OutputParser {
    type Value = Output;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Output, clap::Error> {
        Ok(match value.to_str() {
            Some("yaml") => Output::Format(Format::Yaml),
            Some("json") => Output::Format(Format::Json),
            _ => Output::File(value.into()),
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(["yaml", "json"].into_iter().map(PossibleValue::new)))
    }
}
