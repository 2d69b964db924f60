//! The table of all coordinators, from which help texts, experiments and conformance tests are
//! made.

use super::{Make, adaptive, du, none, pfc};
use crate::settings::Parameter;

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorEntry {
    /// The name for users.
    pub name: &'static str,
    /// The coordinator in one sentence.
    pub about: &'static str,
    /// The publication that describes it.
    pub source: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The constructor.
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
