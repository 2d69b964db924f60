//! The owner of a request: the program, connection or part of the service that waits for it.
//!
//! ```text
//!   31      28 27                                      0
//!   [  kind   |  number within the kind                ]
//!      0          0        nobody: the owner is unknown
//!      1          pid      a process
//!      2 ...               a connection, a queue, a stream, a task, the service itself
//! ```
//!
//! Owners are hints for policies: which request continues which, and who has had the disk for how long. They give no
//! rights, and no request is refused or ordered by its owner.

/// The owner of a request. Two requests have the same owner if one program waits for both.
///
/// [`Owner::NOBODY`] is an unknown owner: two such requests need not belong together. A policy treats them as if requests
/// had no owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Owner(u32);

impl Owner {
    /// The unknown owner.
    pub const NOBODY: Owner = Owner(0);

    /// The process with this id, or the task of a simulated load with this number. Process 0, the kernel's own work in
    /// FUSE requests, is nobody.
    pub const fn process(pid: u32) -> Owner {
        match pid {
            0 => Owner::NOBODY,
            pid => Owner::of(1, pid as u64),
        }
    }

    /// The connection with this number.
    pub const fn connection(number: u64) -> Owner {
        Owner::of(2, number)
    }

    /// The queue of a ublk device with this number.
    pub const fn queue(number: u64) -> Owner {
        Owner::of(3, number)
    }

    /// The stream with this number.
    pub const fn stream(number: u64) -> Owner {
        Owner::of(4, number)
    }

    /// The task of a service with this number.
    pub const fn task(number: u64) -> Owner {
        Owner::of(5, number)
    }

    /// The service itself, for the volume with this number: pages that it writes back, copies and checkpoints.
    pub const fn service(volume: u64) -> Owner {
        Owner::of(6, volume)
    }

    /// The owner of a number within a kind. Numbers that differ by a multiple of 2^28 share an owner; Linux's process
    /// ids have 22 bits.
    const fn of(kind: u32, number: u64) -> Owner {
        Owner((kind << NUMBER_BITS) | (number as u32 & (u32::MAX >> (32 - NUMBER_BITS))))
    }

    /// Whether the owner is known.
    pub const fn is_known(self) -> bool {
        self.0 != Owner::NOBODY.0
    }

    /// The owner of a request that was combined from requests of both: theirs if it is the same, and nobody otherwise.
    /// Neither of two owners waits for such a request alone, so that its end says nothing about the next request of
    /// either.
    pub const fn combined(self, other: Owner) -> Owner {
        if self.0 == other.0 {
            self
        } else {
            Owner::NOBODY
        }
    }
}

/// Bits of the number within a kind. A choice: 15 kinds remain.
const NUMBER_BITS: u32 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_do_not_share_owners_and_process_0_is_nobody() {
        let kinds = [
            Owner::process(7),
            Owner::connection(7),
            Owner::queue(7),
            Owner::stream(7),
            Owner::task(7),
            Owner::service(7),
        ];
        for (place, owner) in kinds.iter().enumerate() {
            assert!(owner.is_known());
            assert!(!kinds[..place].contains(owner));
        }
        assert_eq!(Owner::process(0), Owner::NOBODY);
        assert!(Owner::connection(0).is_known());
        // Not even a number that is too long is of another kind, or nobody's.
        assert_eq!(Owner::connection(1 << 28), Owner::connection(0));
        assert_eq!(Owner::stream(u64::MAX), Owner::stream((1 << 28) - 1));
    }

    #[test]
    fn what_is_combined_is_of_one_owner_or_of_nobody() {
        let owners = [Owner::NOBODY, Owner::process(1), Owner::connection(1)];
        for a in owners {
            assert_eq!(a.combined(a), a);
            for b in owners {
                assert_eq!(a.combined(b), b.combined(a));
                assert_eq!(a.combined(b).is_known(), a == b && a.is_known());
                for c in owners {
                    assert_eq!(a.combined(b).combined(c), a.combined(b.combined(c)));
                }
            }
        }
    }
}
