//! The JobFlow controller: makes the Jobs of the steps one after the other, each when those that it
//! waits for are completed. A step that has been completed is never run again, whatever has become
//! of its Job.

mod flows;
mod make;
mod progress;

pub use flows::Flows;
