//! The delivery of a large request to a drive: whole, or in parts under rules of preemption.

use block::{Sectors, Switch};
use drive::Profile;
use scheduler::Preemption;
use scheduler::preemption::{Split, SplitCost, When};

/// The delivery of a large request to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One command for each request: the paper's npIO.
    Single,
    /// The paper's rules: chunks, just-in-time seeks, seeks over half of the cylinders split in
    /// two.
    Paper,
    /// The paper's rules without preemption: an urgent request waits for the end of the one in
    /// service, which is in chunks.
    Patient,
    /// The paper's rules with free prefetch.
    Prefetch,
    /// The same without splitting of seeks.
    PrefetchWhole,
    /// The paper's chunks alone.
    Chunks,
    /// The paper's chunks and just-in-time seeks.
    JustInTime,
    /// Our rules for the drive, where they pay.
    Own,
    /// Our rules with chunks of this many blocks.
    OwnOf(u32),
    /// Our rules for every request, also where they do not pay.
    Prompt,
    /// The same, with all seeks over this many thousandths of the cylinders split.
    PromptSplit(u32),
}

impl Delivery {
    /// The rules of preemption under a belief; `None` for whole requests.
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
            Delivery::Patient => Preemption {
                aside: None,
                ..paper
            },
            Delivery::Prefetch => Preemption {
                free_prefetch: Switch::On,
                ..paper
            },
            Delivery::PrefetchWhole => Preemption {
                free_prefetch: Switch::On,
                split: None,
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

    /// Commands at the drive. The paper dispatches one by one. Ours overlap a chunk's overhead with
    /// the previous chunk's transfer, unless any further command at the drive delays urgent
    /// requests.
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
            Delivery::Patient => "Virtual IO without preemption",
            Delivery::Prefetch => "Virtual IO with free prefetch",
            Delivery::PrefetchWhole => "Virtual IO with free prefetch and whole seeks",
            Delivery::Chunks => "chunks alone",
            Delivery::JustInTime => "chunks and just-in-time seeks",
            Delivery::Own => "ours",
            Delivery::OwnOf(_) => "ours, smaller chunks",
            Delivery::Prompt => "ours for every request",
            Delivery::PromptSplit(_) => "ours for every request, long seeks split",
        }
    }
}
