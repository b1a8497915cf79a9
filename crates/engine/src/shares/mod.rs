//! What each queue deserves, its fair share, and what admission counts. Nothing here knows plugins.

pub mod admission;
pub mod division;
pub mod fair;
pub mod families;
pub mod proportional;

pub use crate::base::parts_per_million::PPM;
pub use crate::model::queues::{divided, total};
pub use division::{Part, Round, Steps, Tier};
pub use fair::{Division, Portion, Shares, trace};
