//! All coordinators: helps, experiments and the conformance tests are made from this table.

use super::{Make, adaptive, du, none, pfc};
use crate::settings::Parameter;

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorEntry {
    /// How users name it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// How to make one.
    pub make: Make,
}

/// All coordinators.
pub const ALL: &[CoordinatorEntry] = &[
    CoordinatorEntry {
        name: "none",
        about: "The lower level is asked for what the upper one asks for.",
        source: "the base line",
        parameters: &[],
        make: |_, _| Box::new(none::Uncoordinated),
    },
    CoordinatorEntry {
        name: "du",
        about: "What was sent to the upper level is the first that the lower one evicts.",
        source: "Chen, Zhang, Zhou, Scott, Schiefer, SIGMETRICS 2005",
        parameters: &[],
        make: |_, _| Box::new(du::DemoteUpward),
    },
    CoordinatorEntry {
        name: "pfc",
        about: "Lets blocks past the lower cache or reads more, by two queues of block numbers.",
        source: "Zhang, Lee, Ma, Zhou, ICDCS 2008",
        parameters: pfc::PARAMETERS,
        make: |settings, below| Box::new(pfc::Pfc::new(settings, below)),
    },
    CoordinatorEntry {
        name: "adaptive",
        about: "PFC's actions for each file of each client, as long as they shorten the waiting.",
        source: "docs/results, and Zhang et al.",
        parameters: adaptive::PARAMETERS,
        make: |settings, below| Box::new(adaptive::Adaptive::new(settings, below)),
    },
];
