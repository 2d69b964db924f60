//! The ways in which a large request is given to a drive.

use block::{Sectors, Switch};
use drive::Profile;
use scheduler::Preemption;
use scheduler::preemption::{Split, SplitCost};

/// A way, which is rules of preemption or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One command for each request: the paper's npIO.
    Single,
    /// The paper's: chunks, just-in-time seeks, seeks over half of the cylinders in two.
    Paper,
    /// The paper's with free prefetch.
    Prefetch,
    /// The paper's chunks alone.
    Chunks,
    /// The paper's chunks and just-in-time seeks.
    JustInTime,
    /// What suits the drive, where it is worth it.
    Own,
    /// The same in chunks of so many blocks.
    OwnOf(u32),
    /// The same, with seeks over so many thousandths of the cylinders split whatever it costs.
    OwnSplit(u32),
}

impl Way {
    /// The rules on a drive of which `belief` is believed.
    pub fn rules(self, belief: &Profile) -> Option<Preemption> {
        let paper = Preemption::as_in_paper(belief);
        let own = Preemption::suited_to(belief);
        Some(match self {
            Way::Single => return None,
            Way::Paper => paper,
            Way::Prefetch => Preemption {
                free_prefetch: Switch::On,
                ..paper
            },
            Way::Chunks => Preemption {
                just_in_time: None,
                split: None,
                ..paper
            },
            Way::JustInTime => Preemption {
                split: None,
                ..paper
            },
            Way::Own => own,
            Way::OwnOf(blocks) => Preemption {
                chunk: Some(Sectors(u64::from(blocks))),
                ..own
            },
            Way::OwnSplit(permille) => Preemption {
                split: Some(Split {
                    longest: (belief.geometry.cylinders() / 1000 * permille).max(1),
                    cost: SplitCost::Revolution,
                }),
                ..own
            },
        })
    }

    /// The name in drawings.
    pub fn name(self) -> &'static str {
        match self {
            Way::Single => "one command a request",
            Way::Paper => "Virtual IO",
            Way::Prefetch => "Virtual IO with free prefetch",
            Way::Chunks => "chunks alone",
            Way::JustInTime => "chunks and just-in-time seeks",
            Way::Own => "ours",
            Way::OwnOf(_) => "ours, smaller chunks",
            Way::OwnSplit(_) => "ours, long seeks split",
        }
    }
}
