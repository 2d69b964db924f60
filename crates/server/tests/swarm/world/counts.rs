//! What has happened in a run.

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub operations: u64,
    pub cuts: u64,
    pub kills: u64,
    /// Services that were stopped, and began again.
    pub stops: u64,
    pub breaks: u64,
    /// Commands that the drive failed.
    pub failed: u64,
    pub scanned: u64,
    /// Blocks of checkpoints that were checked.
    pub of_moments: u64,
    pub unreadable: u64,
    /// Pieces of films that players have read.
    pub pieces: u64,
    /// Batches of streams that were late, because drive or host were.
    pub late: u64,
    pub connections: u64,
    /// Changes of the volume's length.
    pub resized: u64,
    /// Scrubs of all blocks, and how many of them found the block that had changed.
    pub scrubs: u64,
    pub found: u64,
    /// Services whose traffic was compared with all that was asked of them.
    pub compared: u64,
    /// Drives that strayed from their beliefs, which led to safe mode.
    pub strayed: u64,
    /// Changes of sectors that power cuts took from volatile write caches.
    pub lost: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.stops += other.stops;
        self.breaks += other.breaks;
        self.failed += other.failed;
        self.scanned += other.scanned;
        self.of_moments += other.of_moments;
        self.unreadable += other.unreadable;
        self.pieces += other.pieces;
        self.late += other.late;
        self.connections += other.connections;
        self.resized += other.resized;
        self.scrubs += other.scrubs;
        self.found += other.found;
        self.compared += other.compared;
        self.strayed += other.strayed;
        self.lost += other.lost;
    }
}
