//! The table of all prefetchers, from which help texts, experiments and conformance tests are made.

use super::{Make, amp, linux_2_4, linux_2_6, linux_6, none, obl, ra, sarc};
use crate::settings::{Parameter, Values};

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct PrefetcherEntry {
    /// The name for users.
    pub name: &'static str,
    /// The prefetcher in one sentence.
    pub about: &'static str,
    /// The publication that describes it.
    pub source: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The constructor.
    pub make: Make,
}

/// All prefetchers.
pub const ALL: &[PrefetcherEntry] = &[
    PrefetcherEntry {
        name: "none",
        about: "Fetches nothing ahead.",
        source: "the base line",
        parameters: &[],
        make: |_, _| Box::new(none::Nothing),
    },
    PrefetcherEntry {
        name: "obl",
        about: "One block lookahead: the block after a request.",
        source: "Smith, ACM Computing Surveys 14(3), 1982",
        parameters: obl::PARAMETERS,
        make: |settings, site| Box::new(obl::OneBlock::new(settings, site)),
    },
    PrefetcherEntry {
        name: "ra",
        about: "The P blocks after every request, hit or miss.",
        source: "Zhang, Lee, Ma, Zhou, ICDCS 2008, 2.2",
        parameters: &[Parameter {
            key: "p",
            what: "How many; Zhang et al.: 4.",
            values: Values::Number {
                range: 1..=4096,
                default: ra::DEGREE,
            },
        }],
        make: |settings, _| Box::new(ra::ReadAhead::new(settings.get("p"))),
    },
    PrefetcherEntry {
        name: "linux-2.4",
        about: "Groups that double while they are read; what PFC calls Linux.",
        source: "Zhang et al., ICDCS 2008; Butt, Gniady, Hu, SIGMETRICS 2005",
        parameters: linux_2_4::PARAMETERS,
        make: |settings, _| Box::new(linux_2_4::Linux24::new(settings)),
    },
    PrefetcherEntry {
        name: "linux-2.6",
        about: "A current window and one ahead of it, off after a random read.",
        source: "Linux 2.6.11, mm/readahead.c",
        parameters: linux_2_6::PARAMETERS,
        make: |settings, _| Box::new(linux_2_6::Linux26::new(settings)),
    },
    PrefetcherEntry {
        name: "linux-6",
        about: "On demand: a marker in a window asks for the next one.",
        source: "Linux 6.12, mm/readahead.c",
        parameters: linux_6::PARAMETERS,
        make: |settings, site| Box::new(linux_6::Linux6::new(settings, site)),
    },
    PrefetcherEntry {
        name: "sarc",
        about: "Groups of p tracks, the next one when a trigger g before the end is read.",
        source: "Gill, Modha, USENIX ATC 2005",
        parameters: sarc::PARAMETERS,
        make: |settings, site| Box::new(sarc::Sarc::new(settings, site)),
    },
    PrefetcherEntry {
        name: "amp",
        about: "As SARC, with degree and distance of each sequence adapted to its reader.",
        source: "Gill, Bathen, FAST 2007",
        parameters: amp::PARAMETERS,
        make: |settings, site| Box::new(amp::Amp::new(settings, site)),
    },
];
