//! What each queue deserves, its fair share, and what admission counts. Nothing here knows plugins.

pub(crate) mod admission;
pub(crate) mod deserved;
pub(crate) mod division;
pub(crate) mod fair;
pub(crate) mod families;
pub(crate) mod proportional;

pub use crate::base::parts_per_million::PPM;
pub use crate::model::queues::{divided, total};
pub use division::{Part, Round, Steps, Tier};
pub use fair::{Division, Portion, Shares, trace};
