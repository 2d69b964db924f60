//! Where tracks begin and end, in the order of the blocks, and at which angles.
//!
//! ```text
//!   blocks   |--- track ---|--- track ---|-- track --| ...      known          unknown
//!   angle    ^ start       ^ start + skew
//! ```
//!
//! Angles are those of [`Findings::clock`](crate::Findings): which sector is under the heads when,
//! up to a constant that the choice of the first angle has set. Which surface and cylinder a track
//! is on, a map does not say.

mod boundary;
mod counts;
mod emission;
mod explore;
mod inquiry;
mod joined;
mod landing;
mod line;
mod observer;
mod reach;
mod regions;
mod sector_count;
mod sector_line;
mod settle;
mod shared_delay;
mod shared_turns;
mod slipped;
mod survey;
mod track;
mod track_cycle;
mod verify;
mod walk;

pub(crate) use counts::{check_counts, settle_counts};
pub use explore::{Explored, explore};
pub(crate) use inquiry::{MOST_INQUIRED, inquire};
pub use regions::explore_regions;
pub use sector_line::NoTrack;
pub use settle::{SettledPieces, needs_settling, settle};
pub use survey::survey;
pub use verify::{verify, verify_settled};
