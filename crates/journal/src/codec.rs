//! Values as bytes: MessagePack with the names of fields.

use std::io::{self, Write};

pub use rmp_serde::decode::Error as DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `out` is a `dyn` so that the code to write all that an engine remembers is compiled once.
pub fn encode(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value
        .serialize(&mut rmp_serde::Serializer::new(out).with_struct_map())
        .map_err(io::Error::other)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    rmp_serde::from_slice(bytes)
}
