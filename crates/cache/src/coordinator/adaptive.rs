//! Adaptive: PFC's two actions with one rule per file and client, used only while they shorten demands.
//! The prefetcher is notified of bypassed hits.
//!
//! ```text
//!   request --> turn of --Alone--> as without a coordinator
//!               |    ^                 | completion:
//!               |    '--- watch <------+ waiting time, share of demands, pace:
//!               |                        the better arm leads
//!               '--Coordinated --> the context's rule -> bypass, readmore (bounded by unused blocks)
//! ```
//!
//! PFC has one state for all requests, so that one client's scan affects another client's random reads. It
//! never measures its own effect. Here a new context starts from the last rule and adapts by itself.
//!
//! | Module | Content |
//! |---|---|
//! | `watch` | alternates turns without and with coordination, and selects the leading arm |
//! | `gain` | compares the waiting time of demands under both arms |
//! | `pace` | compares the time per block of clients that wait for completions |
//! | `bursts` | detects bursts, in which there are no trials |
//! | `regions` | attributes waiting to the arm of the request that prepared the region |
//! | `allowance` | halves readmore when its blocks are evicted unused |
//!
//! Effects that both arms share are not visible. A less busy disk speeds up both arms' turns, so gains are
//! larger than measured. A prefetcher that adapts wrongly in one turn slows down all, so losses may be larger,
//! too. The upper level does not report who waits for its prefetches. The pace shows it for clients in a closed
//! loop; nothing does for requests with given arrival times.

use block::{Duration, Instant};

use super::pfc::{Queues, Readings, Rule};
use super::{
    Coordinator, CoordinatorRules, Footprint, LONGEST_REQUEST, LowerCache, Purpose, ReadmoreAs,
    RequestPlan, SilentUse, Tag, UpperRequest,
};
use crate::cache::Evicted;
use crate::lru_map::LruMap;
use crate::residency::{FetchOrigin, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values, words};

mod allowance;
mod bursts;
mod gain;
mod pace;
mod regions;
mod watch;

use allowance::Allowance;
use gain::Prepared;
use regions::PreparedRegions;
use watch::{ArmTurn, TurnPeriod, Watch};

words! {
    /// The requests that share a rule.
    ContextOf {
        /// Requests of one client for one file.
        File = "file",
        /// Requests of one client.
        Client = "client",
        /// All requests, as in PFC.
        All = "all",
    }
}

words! {
    /// Whether the coordinator compares itself with no coordination.
    Watching {
        /// It does.
        On = "on",
        /// It always coordinates.
        Off = "off",
    }
}

/// The parameters.
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
        what: "How many requests a turn lasts at first; later ones become eight times as long. A choice, \
               made with the calibrated loads of seed 1.",
        values: Values::Number {
            range: 4..=65_536,
            default: 64,
        },
    },
    Parameter {
        key: "queue",
        what: "Each queue's size in percent of the lower cache's blocks; with PFC's 10 it takes more than \
               0.05 % of the cache's memory, and gains as much.",
        values: Values::Number {
            range: 1..=100,
            default: 4,
        },
    },
];

/// The arms that are compared.
///
/// A third arm, one rule for all requests, was tried for many short files, whose own rules have no time to
/// adapt. It used a third of all turns before the comparison was clear. A rule that starts from the last one
/// gains as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// No coordination.
    Alone,
    /// The context's rule.
    Coordinated,
}

/// Frames of the lower cache per context: all contexts take less than a twentieth of 0.05 % of its memory.
/// The least recently used context is evicted.
const FRAMES: u32 = 1024;

/// The least number of contexts, because alternating files would evict each other. In caches of less than
/// [`LEAST`] x [`FRAMES`] blocks (128 MiB) contexts exceed their share. A choice.
const LEAST: u32 = 32;

/// The largest number of contexts: sixteen clients with 256 files each. A choice.
const MOST: u32 = 4096;

/// An adaptive coordinator.
#[derive(Clone, Debug)]
pub struct Adaptive {
    context_of: ContextOf,
    readings: Readings,
    contexts: LruMap<(u32, u64), Rule>,
    /// The rule of the last request, from which a new context starts.
    last: Rule,
    queues: Queues,
    allowance: Allowance,
    watch: Option<Watch>,
    regions: PreparedRegions,
    /// Whether the lower cache has been full. Before that a bypass frees no frame, and misses are the same
    /// under both arms.
    was_full: bool,
}

impl Adaptive {
    /// A coordinator with these settings above the cache `below`.
    pub fn new(settings: &AlgorithmSettings, below: &LowerCache) -> Self {
        let contexts = (below.frames / FRAMES).clamp(LEAST, MOST);
        Adaptive {
            context_of: ContextOf::of(settings, "context"),
            readings: Readings::of(&AlgorithmSettings::of(super::pfc::PARAMETERS)),
            contexts: LruMap::new(contexts as usize),
            last: Rule::NEW,
            queues: Queues::new(below, settings.get("queue")),
            allowance: Allowance::default(),
            watch: match Watching::of(settings, "watch") {
                Watching::On => Some(Watch::new(settings.get("slice") as u32)),
                Watching::Off => None,
            },
            regions: PreparedRegions::new(below.frames),
            was_full: false,
        }
    }
}

impl Coordinator for Adaptive {
    fn plan(&mut self, now: Instant, asked: &UpperRequest, lower: &Residency) -> RequestPlan {
        if asked.blocks.len() > LONGEST_REQUEST {
            return RequestPlan::default();
        }
        if let Some(watch) = &mut self.watch {
            watch.asked(now, asked);
        }
        self.was_full |= lower.is_full();
        let turn = match &mut self.watch {
            Some(watch) if self.was_full => watch.turn(asked.purpose),
            Some(_) => ArmTurn {
                arm: Arm::Alone,
                period: TurnPeriod::Rest,
            },
            None => ArmTurn {
                arm: Arm::Coordinated,
                period: TurnPeriod::Rest,
            },
        };
        let tag = Tag(match (&mut self.watch, turn.period) {
            (Some(watch), TurnPeriod::Round) => {
                let (arm, prepared) = match self.regions.prepared_by(asked.blocks) {
                    None => (turn.arm, Prepared::Unknown),
                    Some(arm) => (arm, Prepared::Known),
                };
                watch.counts(now, asked, arm, prepared)
            }
            _ => 0,
        });
        self.regions.ask(asked.blocks, turn.arm);
        if turn.arm == Arm::Alone {
            return RequestPlan {
                tag,
                ..RequestPlan::default()
            };
        }
        let context = match self.context_of {
            ContextOf::File => (asked.client, asked.file),
            ContextOf::Client => (asked.client, 0),
            ContextOf::All => (0, 0),
        };
        let last = self.last;
        let rule = self.contexts.touch_or(context, || last);
        let plan = rule.step(asked, lower, &self.readings, &mut self.queues);
        self.last = *rule;
        RequestPlan {
            readmore: self.allowance.of(plan.readmore),
            tag,
            ..plan
        }
    }

    /// The prefetcher is notified of silent hits, and sees readmore as a prefetch. Seen as a demand, readmore
    /// would be fetched ahead of, too, which lengthens the longest responses.
    fn rules(&self) -> CoordinatorRules {
        CoordinatorRules {
            silent_use: SilentUse::Reported,
            readmore: ReadmoreAs::Prefetch,
            ..CoordinatorRules::default()
        }
    }

    fn on_answered(&mut self, asked: &UpperRequest, plan: RequestPlan, waited: Duration) {
        if asked.blocks.len() > LONGEST_REQUEST {
            return;
        }
        if let Some(watch) = &mut self.watch {
            watch.answered(asked, plan.tag.0, waited.as_nanos());
        }
    }

    fn on_evicted(&mut self, evicted: &Evicted) {
        if evicted.origin == FetchOrigin::Readmore {
            match evicted.was_used {
                true => self.allowance.used(),
                false => self.allowance.unused(),
            }
        }
    }

    fn footprint(&self) -> Footprint {
        let itself = Footprint {
            rule: 0,
            beyond: size_of::<Self>() + self.contexts.memory() + self.regions.memory(),
        };
        self.queues.footprint() + itself
    }
}

#[cfg(test)]
mod tests {
    use block::{Duration, Instant};

    use super::watch::tag_of;
    use super::{Adaptive, Arm, PARAMETERS, Prepared};
    use crate::cache::Evicted;
    use crate::coordinator::tests::{Lower, asked};
    use crate::coordinator::{Coordinator, LowerCache, Purpose, UpperRequest};
    use crate::residency::FetchOrigin;
    use crate::settings::AlgorithmSettings;

    /// How many blocks of each request are let past, of files that are read in turn.
    fn bypasses(text: &str, files: u64) -> Vec<u64> {
        let mut lower = Lower::new(text, 67);
        let requests = (0..4 * files).map(|step| UpperRequest {
            file: step % files,
            ..asked(
                1000 * (step % files) + 4 * (step / files),
                1000 * (step % files) + 4 * (step / files) + 3,
            )
        });
        requests.map(|asked| lower.serve(&asked).0.bypass).collect()
    }

    #[test]
    fn each_file_has_a_rule_of_its_own_that_begins_with_the_last_one() {
        // Each request lets one more block past than the last one of its file.
        assert_eq!(
            bypasses("adaptive(watch=off)", 4)[..8],
            [1, 2, 3, 4, 2, 3, 4, 4]
        );
        let of_all = bypasses("adaptive(watch=off,context=all)", 4);
        assert_eq!(of_all[..8], [1, 2, 3, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn nothing_is_on_trial_before_the_lower_cache_is_full() {
        let bypassed = |frames| {
            let mut lower = Lower::new("adaptive(slice=4)", frames);
            let requests = (0..1000).map(|step| asked(4 * step, 4 * step + 3));
            let bypasses = requests.map(|asked| lower.serve(&asked).0.bypass);
            bypasses.sum::<u64>()
        };
        assert_eq!(bypassed(4001), 0);
        assert!(bypassed(3000) > 0);
    }

    #[test]
    fn waiting_counts_for_the_arm_that_prepared_the_ground() {
        let mut lower = Lower::new("adaptive(slice=64)", 64);
        lower.serve(&asked(0, 63));
        // Far from everything: it counts for the arm whose turn it is.
        let mut far = 1 << 20;
        let mut turn_of = |lower: &mut Lower, arm: Arm| {
            for _ in 0..1000 {
                far += 1000;
                if lower.serve(&asked(far, far)).0.tag.0 == tag_of(arm, Prepared::Unknown) {
                    return;
                }
            }
            panic!("{arm:?} has no turn");
        };
        let known = |arm| tag_of(arm, Prepared::Known);
        turn_of(&mut lower, Arm::Alone);
        lower.serve(&asked(1000, 1003));
        turn_of(&mut lower, Arm::Coordinated);
        assert_eq!(lower.serve(&asked(1004, 1005)).0.tag.0, known(Arm::Alone));
        // Now the other did.
        let tag = lower.serve(&asked(1006, 1007)).0.tag.0;
        assert_eq!(tag, known(Arm::Coordinated));
    }

    #[test]
    fn nobody_waits_for_prefetches() {
        // Coordination is quick for demands, and slow for prefetches, or the other way round.
        let coordinates = |demand: u64, prefetch: u64| {
            let mut adaptive = Adaptive::new(
                &AlgorithmSettings::of(PARAMETERS),
                &LowerCache { frames: 1 },
            );
            let lower = Lower::new("none", 1);
            adaptive.was_full = true;
            let mut bypassed = 0;
            for step in 0..20_000 {
                let purpose = match step % 2 {
                    0 => Purpose::Demand,
                    _ => Purpose::Prefetch,
                };
                let asked = UpperRequest {
                    purpose,
                    ..asked(100 * step, 100 * step)
                };
                let plan = adaptive.plan(Instant::ZERO, &asked, lower.cache.residency());
                bypassed += plan.bypass;
                let waited = match (plan.bypass, purpose) {
                    (0, _) => 1000 + step % 100,
                    (_, Purpose::Demand) => demand,
                    (_, Purpose::Prefetch) => prefetch,
                };
                adaptive.on_answered(&asked, plan, Duration::from_nanos(waited));
            }
            bypassed > 10_000
        };
        assert!(coordinates(800, 100_000));
        assert!(!coordinates(1200, 1));
    }

    #[test]
    fn what_was_read_more_in_vain_is_read_more_no_longer() {
        let readmore = |evictions: &[bool]| {
            let mut lower = Lower::new("adaptive(watch=off)", 1000);
            for &was_used in evictions {
                for block in 0..64 {
                    lower.coordinator.on_evicted(&Evicted {
                        block,
                        origin: FetchOrigin::Readmore,
                        was_used,
                    });
                }
            }
            lower.serve(&asked(0, 3));
            lower.serve(&asked(4, 7)).0.readmore
        };
        assert_eq!(readmore(&[]), 4);
        assert_eq!(readmore(&[false]), 2);
        assert_eq!(readmore(&[false, true]), 4);
    }

    #[test]
    fn who_watches_begins_without_coordination() {
        let first_turn = bypasses("adaptive", 4);
        assert!(first_turn.iter().all(|&bypass| bypass == 0));
    }
}
