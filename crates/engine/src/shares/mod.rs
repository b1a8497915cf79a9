//! What each queue deserves, its fair share, and what admission counts. Nothing here knows plugins.

pub mod admission;
pub mod division;
pub mod fair;
pub mod families;
pub mod proportional;

pub use division::{PPM, Part, Round, Steps, Tier};
pub use fair::{Division, Portion, Shares, divided, total, trace};
