//! How far a pattern of tracks goes on, and which of them lack blocks.
//!
//! ```text
//!   |--- n ---|--- n ---|-- n-1 --|--- n ---|        four tracks, one of them short
//! ```

/// A track that lacks some blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortTrack {
    /// How many tracks ahead it is.
    pub(super) ahead: u64,
    /// How many blocks it lacks.
    pub(super) missing: u32,
}

/// How far a pattern goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// The number of tracks.
    pub(super) tracks: u64,
    /// How far off the last boundary is, in revolutions.
    pub(super) off: f64,
    /// Those that lack blocks, ascending.
    pub(super) short: Vec<ShortTrack>,
}

impl Reach {
    /// So many tracks, all as expected; the last boundary is so far off.
    pub(super) fn all(tracks: u64, off: f64) -> Self {
        Reach {
            tracks,
            off,
            short: Vec::new(),
        }
    }
}
