//! What the tests of controllers share.

pub mod jobs;
pub mod scene;
pub mod server;
