//! The ways in which a large request is given to a drive.

use block::{Sectors, Switch};
use drive::Profile;
use scheduler::Preemption;
use scheduler::preemption::{Split, SplitCost, When};

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
    /// What suits the drive, for every request: whoever is urgent asks for it.
    Prompt,
    /// The same, with seeks over so many thousandths of the cylinders split whatever it costs.
    PromptSplit(u32),
}

impl Way {
    /// The rules on a drive of which `belief` is believed.
    pub fn rules(self, belief: &Profile) -> Option<Preemption> {
        let paper = Preemption::as_in_paper(belief);
        let own = Preemption::suited_to(belief);
        let prompt = Preemption {
            when: When::Always,
            ..own
        };
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
            Way::Prompt => prompt,
            Way::PromptSplit(permille) => Preemption {
                split: Some(Split {
                    longest: (belief.geometry.cylinders() / 1000 * permille).max(1),
                    cost: SplitCost::Revolution,
                }),
                ..prompt
            },
        })
    }

    /// Commands at the drive at once. The paper's are given one by one; ours overlap a chunk's cost with
    /// the medium's work on the one before, except where every command that is there already is one too
    /// many.
    pub fn at_drive(self) -> usize {
        match self {
            Way::Own | Way::OwnOf(_) => 2,
            _ => 1,
        }
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
            Way::Prompt => "ours for every request",
            Way::PromptSplit(_) => "ours for every request, long seeks split",
        }
    }
}
