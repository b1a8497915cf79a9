//! Measures the engine: how fast it decides ([`speed`]), and how good its choices are
//! ([`quality`]).

pub mod quality;
pub mod speed;
