//! Ours: PFC's two actions with a state for each file of each client, told to the prefetcher, and only as
//! long as those who wait have something from it.
//!
//! ```text
//!   asked --> whose turn? --arm 0--> as if there were no coordinator
//!               |    ^                 | answered after ..
//!               |    '--- watch <------+ .. waiting for a block: which arm is better
//!               '--arm 1, 2 -> the context's rule -> bypass, readmore (bounded by what goes unused)
//! ```
//!
//! PFC has one state for all requests, so that one client's scan changes what another one's random reads
//! get, and it never looks at what it did. Here turns change between no coordination and each kind of
//! it, and the waiting of demands says which one stays (see [`watch`]). What is read more and evicted
//! unused halves how much more is read.

use block::Duration;

use super::pfc::{Actions, Queues, Readings, Rule};
use super::{
    Asked, Below, Coordinator, Footprint, LONGEST_REQUEST, Manners, Plan, Purpose, SilentUse, Tag,
};
use crate::cache::Evicted;
use crate::lru_map::LruMap;
use crate::residency::{Origin, Residency};
use crate::settings::{Parameter, Settings, Values, words};

mod allowance;
pub mod watch;

use allowance::Allowance;
use watch::Watch;

words! {
    /// Whose requests share a rule.
    ContextOf {
        /// Those of one client for one file.
        File = "file",
        /// Those of one client.
        Client = "client",
        /// All, as in PFC.
        All = "all",
    }
}

words! {
    /// Whether it watches itself.
    Watching {
        /// It does.
        On = "on",
        /// It always coordinates.
        Off = "off",
    }
}

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "context",
        what: "Whose requests share a rule.",
        values: Values::Words(ContextOf::WORDS),
    },
    Parameter {
        key: "watch",
        what: "Whether it watches itself; off: to see what that costs and saves.",
        values: Values::Words(Watching::WORDS),
    },
    Parameter {
        key: "slice",
        what: "How many requests a turn lasts; 64 is better than 128 and 256 in the system model, with \
               the calibrated loads of seed 1.",
        values: Values::Number {
            range: 4..=65_536,
            default: 64,
        },
    },
    Parameter {
        key: "queue",
        what: "Each queue's size in percent of the lower cache's blocks; as PFC's.",
        values: Values::Number {
            range: 1..=100,
            default: 10,
        },
    },
];

/// What each arm but the first does. Figure 7 of Zhang et al.: both is mostly the best, for AMP readmore
/// alone. Both by a rule of all requests is there for files that are many and short: a rule of their
/// own learns nothing before they end.
const ARMS: [(Actions, Scope); 3] = [
    (Actions::Both, Scope::Context),
    (Actions::Both, Scope::All),
    (Actions::Readmore, Scope::Context),
];

/// Whose requests an arm's rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Those of the context.
    Context,
    /// All.
    All,
}

/// A context for so many frames of the lower cache, so that all of them together take less than a
/// twentieth of 0.05 % of its memory; the one that was used longest ago is forgotten. At most [`MOST`].
const FRAMES: u32 = 1024;

/// And never fewer, or files that take turns would forget each other: in caches of less than
/// [`LEAST`] x [`FRAMES`] blocks (128 MiB) contexts take more than their part. A choice.
const LEAST: u32 = 32;

/// More contexts are never kept: sixteen clients with 256 files each. A choice.
const MOST: u32 = 4096;

/// The coordinator.
#[derive(Clone, Debug)]
pub struct Ours {
    context_of: ContextOf,
    readings: [Readings; ARMS.len()],
    contexts: LruMap<(u32, u64), Rule>,
    /// The rule of all requests.
    of_all: Rule,
    queues: Queues,
    allowance: Allowance,
    watch: Option<Watch>,
}

impl Ours {
    /// As set.
    pub fn new(settings: &Settings, below: &Below) -> Self {
        let literal = Readings::of(&Settings::of(super::pfc::PARAMETERS));
        let contexts = (below.frames / FRAMES).clamp(LEAST, MOST);
        Ours {
            context_of: ContextOf::of(settings, "context"),
            readings: ARMS.map(|(actions, _)| Readings { actions, ..literal }),
            contexts: LruMap::new(contexts as usize),
            of_all: Rule::NEW,
            queues: Queues::new(below, settings.get("queue")),
            allowance: Allowance::default(),
            watch: match Watching::of(settings, "watch") {
                Watching::On => Some(Watch::new(1 + ARMS.len(), settings.get("slice") as u32)),
                Watching::Off => None,
            },
        }
    }
}

impl Coordinator for Ours {
    fn plan(&mut self, asked: &Asked, lower: &Residency) -> Plan {
        if asked.blocks.len() > LONGEST_REQUEST {
            return Plan::default();
        }
        let turn = match &mut self.watch {
            Some(watch) => watch.turn(),
            None => watch::Turn { arm: 1, tag: 0 },
        };
        let tag = Tag(turn.tag);
        let Some(arm) = turn.arm.checked_sub(1) else {
            return Plan {
                tag,
                ..Plan::default()
            };
        };
        let context = match self.context_of {
            ContextOf::File => (asked.client, asked.file),
            ContextOf::Client => (asked.client, 0),
            ContextOf::All => (0, 0),
        };
        let rule = match ARMS[arm].1 {
            Scope::Context => self.contexts.touch_or(context, || Rule::NEW),
            Scope::All => &mut self.of_all,
        };
        let plan = rule.step(asked, lower, &self.readings[arm], &mut self.queues);
        Plan {
            readmore: self.allowance.of(plan.readmore),
            tag,
            ..plan
        }
    }

    fn manners(&self) -> Manners {
        Manners {
            silent_use: SilentUse::Told,
            ..Manners::default()
        }
    }

    fn on_answered(&mut self, asked: &Asked, plan: Plan, waited: Duration) {
        // Nobody waits for a prefetch.
        if let Some(watch) = &mut self.watch
            && asked.purpose == Purpose::Demand
        {
            watch.answered(plan.tag.0, waited.as_nanos(), asked.blocks.len());
        }
    }

    fn on_evicted(&mut self, evicted: &Evicted) {
        if evicted.origin == Origin::Readmore {
            match evicted.was_used {
                true => self.allowance.used(),
                false => self.allowance.unused(),
            }
        }
    }

    fn footprint(&self) -> Footprint {
        let itself = Footprint {
            rule: 0,
            beyond: size_of::<Self>() + self.contexts.memory(),
        };
        self.queues.footprint() + itself
    }
}

#[cfg(test)]
mod tests {
    use crate::coordinator::Asked;
    use crate::coordinator::tests::{Lower, asked};

    /// How many blocks of each request are let past, of files that are read in turn.
    fn bypasses(text: &str, files: u64) -> Vec<u64> {
        let mut lower = Lower::new(text, 67);
        let requests = (0..4 * files).map(|step| Asked {
            file: step % files,
            ..asked(
                1000 * (step % files) + 4 * (step / files),
                1000 * (step % files) + 4 * (step / files) + 3,
            )
        });
        requests.map(|asked| lower.serve(&asked).0.bypass).collect()
    }

    #[test]
    fn each_file_has_a_rule_of_its_own_in_a_small_cache_too() {
        // The first request of each file lets one block past, the second one two.
        assert_eq!(
            bypasses("ours(watch=off)", 4)[..8],
            [1, 1, 1, 1, 2, 2, 2, 2]
        );
        let of_all = bypasses("ours(watch=off,context=all)", 4);
        assert_eq!(of_all[..4], [1, 2, 3, 4]);
    }

    #[test]
    fn who_watches_begins_without_coordination() {
        let first_turn = bypasses("ours", 4);
        assert!(first_turn.iter().all(|&bypass| bypass == 0));
    }
}
