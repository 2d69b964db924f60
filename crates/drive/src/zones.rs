//! Host-managed zones: parts of the blocks that are written from the front, each at its write pointer.
//!
//! ```text
//!                 open            close
//!   empty -------------> open <------------> closed       write at the pointer: open, until the zone
//!     ^                   |                     |         is full
//!     '------ reset ------+--- finish --> full -'
//! ```
//!
//! The conditions are those of ZBC and of NVMe's zoned namespaces. Reads are free in any zone.

use std::collections::BTreeMap;

use block::{Extent, Lba, Sectors};

/// The condition of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneCondition {
    /// Nothing was written since the last reset.
    #[default]
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// Its host opened it.
    ExplicitlyOpen,
    /// It has blocks, and holds no resources of the drive.
    Closed,
    /// It takes no writes before it is reset.
    Full,
}

/// What a host can do with a zone besides reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// The zone is kept open.
    Open,
    /// The drive may use the resources of the zone for others.
    Close,
    /// The zone becomes full.
    Finish,
    /// The zone becomes empty, and its blocks are lost.
    Reset,
}

/// A zone as the drive reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its blocks. The last zone may be shorter than the others.
    pub extent: Extent,
    /// The block at which the next write must begin. Of a full zone: its end.
    pub pointer: Lba,
    /// Its condition.
    pub condition: ZoneCondition,
}

/// Why a drive refuses an action on a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneRefused {
    /// The drive has no zones, or no such block.
    #[error("no zone begins at {at}: expected the first block of one")]
    NoZone {
        /// The block.
        at: Lba,
    },
    /// As many zones are kept open as the drive can.
    #[error("{MOST_OPEN} zones are open: expected one to be closed first")]
    TooManyOpen,
    /// A full zone can only be reset.
    #[error("the zone at {at} is full: expected a reset first")]
    Full {
        /// The first block of the zone.
        at: Lba,
    },
}

/// Zones that a host can keep open. A choice: what host-managed drives of 2020 report (128), less one that
/// is left for writes to other zones.
pub const MOST_OPEN: usize = 127;

/// The zones of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    /// The blocks of a zone.
    blocks: u64,
    capacity: u64,
    /// Those that are not empty, by number. Offsets of the pointers.
    used: BTreeMap<u64, (u64, ZoneCondition)>,
}

impl Zones {
    /// Empty zones of so many blocks on a drive of `capacity` blocks.
    pub(crate) fn new(blocks: u64, capacity: u64) -> Self {
        assert!(blocks > 0, "zones of no blocks: expected at least one");
        Zones {
            blocks,
            capacity,
            used: BTreeMap::new(),
        }
    }

    /// Takes a write, or tells where the next one in the zone must begin.
    ///
    /// # Errors
    /// If it does not begin at the pointer of a zone, or ends in another one.
    pub(crate) fn write(&mut self, extent: Extent) -> Result<(), Lba> {
        let number = extent.start().0 / self.blocks;
        let zone = self.zone(number);
        if extent.start() != zone.pointer || extent.end() > zone.extent.end() {
            return Err(zone.pointer);
        }
        let condition = match zone.condition {
            _ if extent.end() == zone.extent.end() => ZoneCondition::Full,
            ZoneCondition::ExplicitlyOpen => ZoneCondition::ExplicitlyOpen,
            _ => ZoneCondition::ImplicitlyOpen,
        };
        let offset = extent.end().0 - zone.extent.start().0;
        self.used.insert(number, (offset, condition));
        Ok(())
    }

    /// Changes the zone that begins at `at`.
    pub(crate) fn act(&mut self, at: Lba, action: ZoneAction) -> Result<(), ZoneRefused> {
        if at.0 >= self.capacity || !at.0.is_multiple_of(self.blocks) {
            return Err(ZoneRefused::NoZone { at });
        }
        let number = at.0 / self.blocks;
        let zone = self.zone(number);
        let offset = zone.pointer.0 - at.0;
        let is_kept_open =
            |(_, condition): &&(u64, ZoneCondition)| *condition == ZoneCondition::ExplicitlyOpen;
        let state = match (action, zone.condition) {
            (ZoneAction::Reset, _) => (0, ZoneCondition::Empty),
            (ZoneAction::Finish, _) => (zone.extent.length().0, ZoneCondition::Full),
            (_, ZoneCondition::Full) => return Err(ZoneRefused::Full { at }),
            (ZoneAction::Open, ZoneCondition::ExplicitlyOpen) => return Ok(()),
            (ZoneAction::Open, _)
                if self.used.values().filter(is_kept_open).count() >= MOST_OPEN =>
            {
                return Err(ZoneRefused::TooManyOpen);
            }
            (ZoneAction::Open, _) => (offset, ZoneCondition::ExplicitlyOpen),
            (ZoneAction::Close, _) if offset == 0 => (0, ZoneCondition::Empty),
            (ZoneAction::Close, _) => (offset, ZoneCondition::Closed),
        };
        match state {
            (_, ZoneCondition::Empty) => self.used.remove(&number),
            state => self.used.insert(number, state),
        };
        Ok(())
    }

    /// Closes all zones after a power cut. The pointers of those whose writes did not reach the medium go
    /// back to these writes.
    pub(crate) fn fall_back(&mut self, unwritten: &[Extent]) {
        for extent in unwritten {
            let number = extent.start().0 / self.blocks;
            let offset = extent.start().0 % self.blocks;
            if let Some((pointer, condition)) = self.used.get_mut(&number)
                && offset < *pointer
            {
                (*pointer, *condition) = (offset, ZoneCondition::Closed);
            }
        }
        self.used.retain(|_, (pointer, condition)| {
            if *condition != ZoneCondition::Full {
                *condition = ZoneCondition::Closed;
            }
            *pointer > 0
        });
    }

    /// The zones with blocks of `extent`, in their order.
    pub(crate) fn report(&self, extent: Extent) -> impl Iterator<Item = Zone> {
        let last = extent.last().0.min(self.capacity - 1);
        let numbers = extent.start().0 / self.blocks..=last / self.blocks;
        numbers.map(|number| self.zone(number))
    }

    fn zone(&self, number: u64) -> Zone {
        let first = number * self.blocks;
        let blocks = Sectors(self.blocks.min(self.capacity.saturating_sub(first)));
        let extent = Extent::new(Lba(first), blocks).expect("a zone of the drive");
        let (offset, condition) = self.used.get(&number).copied().unwrap_or_default();
        Zone {
            extent,
            pointer: Lba(first + offset),
            condition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, blocks: u64) -> Extent {
        Extent::new(Lba(start), Sectors(blocks)).expect("an extent")
    }

    fn condition(zones: &Zones, at: u64) -> (u64, ZoneCondition) {
        let zone = zones.report(extent(at, 1)).next().expect("a zone");
        (zone.pointer.0, zone.condition)
    }

    #[test]
    fn a_zone_goes_from_condition_to_condition() {
        let mut zones = Zones::new(100, 250);
        assert_eq!(condition(&zones, 100), (100, ZoneCondition::Empty));
        assert_eq!(zones.write(extent(100, 30)), Ok(()));
        assert_eq!(condition(&zones, 100), (130, ZoneCondition::ImplicitlyOpen));
        assert_eq!(zones.act(Lba(100), ZoneAction::Close), Ok(()));
        assert_eq!(condition(&zones, 199), (130, ZoneCondition::Closed));
        assert_eq!(zones.act(Lba(100), ZoneAction::Open), Ok(()));
        assert_eq!(zones.write(extent(130, 10)), Ok(()));
        assert_eq!(condition(&zones, 100), (140, ZoneCondition::ExplicitlyOpen));
        assert_eq!(zones.act(Lba(100), ZoneAction::Finish), Ok(()));
        assert_eq!(condition(&zones, 100), (200, ZoneCondition::Full));
        assert_eq!(zones.write(extent(100, 1)), Err(Lba(200)));
        let full = Err(ZoneRefused::Full { at: Lba(100) });
        assert_eq!(zones.act(Lba(100), ZoneAction::Open), full);
        assert_eq!(zones.act(Lba(100), ZoneAction::Reset), Ok(()));
        assert_eq!(condition(&zones, 100), (100, ZoneCondition::Empty));
        // The last zone is half as long, and full after as many blocks.
        assert_eq!(zones.write(extent(200, 51)), Err(Lba(200)));
        assert_eq!(zones.write(extent(200, 50)), Ok(()));
        assert_eq!(condition(&zones, 249), (250, ZoneCondition::Full));
        let none = Err(ZoneRefused::NoZone { at: Lba(150) });
        assert_eq!(zones.act(Lba(150), ZoneAction::Reset), none);
        assert_eq!(zones.report(extent(0, 250)).count(), 3);
    }

    #[test]
    fn as_many_zones_are_kept_open_as_the_drive_can() {
        let mut zones = Zones::new(1, 1000);
        let most = MOST_OPEN as u64;
        for at in 0..most {
            assert_eq!(zones.act(Lba(at), ZoneAction::Open), Ok(()));
        }
        let refused = Err(ZoneRefused::TooManyOpen);
        assert_eq!(zones.act(Lba(most), ZoneAction::Open), refused);
        assert_eq!(zones.act(Lba(3), ZoneAction::Close), Ok(()));
        assert_eq!(zones.act(Lba(most), ZoneAction::Open), Ok(()));
    }

    #[test]
    fn a_power_cut_closes_zones_and_takes_pointers_back() {
        let mut zones = Zones::new(100, 300);
        for write in [extent(0, 60), extent(100, 100), extent(200, 5)] {
            assert_eq!(zones.write(write), Ok(()));
        }
        zones.fall_back(&[extent(40, 20), extent(150, 50), extent(200, 5)]);
        assert_eq!(condition(&zones, 0), (40, ZoneCondition::Closed));
        assert_eq!(condition(&zones, 100), (150, ZoneCondition::Closed));
        assert_eq!(condition(&zones, 200), (200, ZoneCondition::Empty));
    }
}
