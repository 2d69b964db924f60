//! How a large request is delivered to a drive: whole, or in parts under rules of preemption.

use block::{Sectors, Switch};
use drive::Profile;
use scheduler::Preemption;
use scheduler::preemption::{Split, SplitCost, When};

/// How a large request is delivered to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
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

impl Delivery {
    /// The rules of preemption under a belief; none for whole requests.
    pub fn rules(self, belief: &Profile) -> Option<Preemption> {
        let paper = Preemption::as_in_paper(belief);
        let own = Preemption::suited_to(belief);
        let prompt = Preemption {
            when: When::Always,
            ..own
        };
        Some(match self {
            Delivery::Single => return None,
            Delivery::Paper => paper,
            Delivery::Prefetch => Preemption {
                free_prefetch: Switch::On,
                ..paper
            },
            Delivery::Chunks => Preemption {
                just_in_time: None,
                split: None,
                ..paper
            },
            Delivery::JustInTime => Preemption {
                split: None,
                ..paper
            },
            Delivery::Own => own,
            Delivery::OwnOf(blocks) => Preemption {
                chunk: Some(Sectors(u64::from(blocks))),
                ..own
            },
            Delivery::Prompt => prompt,
            Delivery::PromptSplit(permille) => Preemption {
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
            Delivery::Own | Delivery::OwnOf(_) => 2,
            _ => 1,
        }
    }

    /// The name in drawings.
    pub fn name(self) -> &'static str {
        match self {
            Delivery::Single => "one command a request",
            Delivery::Paper => "Virtual IO",
            Delivery::Prefetch => "Virtual IO with free prefetch",
            Delivery::Chunks => "chunks alone",
            Delivery::JustInTime => "chunks and just-in-time seeks",
            Delivery::Own => "ours",
            Delivery::OwnOf(_) => "ours, smaller chunks",
            Delivery::Prompt => "ours for every request",
            Delivery::PromptSplit(_) => "ours for every request, long seeks split",
        }
    }
}
