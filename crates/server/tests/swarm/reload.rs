//! What a reload changes while the service goes on: the length of the volume, its exports, the impact budget, the belief.
//!
//! ```text
//!   shrink: blocks past the end are refused, and their unwritten pages dropped
//!   growth: they have what the medium has
//!   take up: the engine of a belief takes the place of one without, once that holds nothing
//! ```

use std::ops::Range;
use std::sync::{Arc, mpsc};

use block::{Class, Duration};
use scheduler::policy::find;
use server::disk::learning::LearningGrant;
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::volume::{Export, Resize};

use crate::plan::{Belief, Dice, Medium, Setting};
use crate::run::{BLOCK, engine};
use crate::world::{Tell, Told, tell};

/// What a reload or the control plane changes.
#[derive(Clone, Copy, Debug)]
pub enum ReloadStep {
    /// The volume has so many pages from now on.
    Resize {
        pages: u64,
    },
    /// The volume has another export, of this class.
    Export(Class),
    /// The name of the exports belongs to another volume of the drive from now on.
    Rename,
    /// The impact budget in parts per million.
    Impact(u32),
    /// A belief is followed from now on.
    TakeUp,
    /// The drive is profiled behind its load.
    Learn {
        seconds: u64,
        granted_ppm: u32,
    },
    StopLearning,
}

/// Blocks of a page, which a volume has a whole number of.
const PAGE_BLOCKS: u64 = 4096 / BLOCK;

impl ReloadStep {
    pub fn draw(setting: &Setting, dice: &mut Dice) -> ReloadStep {
        let may_learn = setting.belief == Belief::None && setting.medium != Medium::File;
        let step = dice.below(10);
        match step {
            0..4 => ReloadStep::Resize {
                pages: match dice.percent(40) {
                    true => setting.blocks / PAGE_BLOCKS,
                    false => 1 + dice.below(setting.blocks / PAGE_BLOCKS),
                },
            },
            4 if may_learn => ReloadStep::TakeUp,
            5..7 if may_learn => ReloadStep::Learn {
                seconds: 1 + dice.below(60),
                granted_ppm: dice.below(500_000) as u32,
            },
            7 if may_learn => ReloadStep::StopLearning,
            4..7 if setting.background => ReloadStep::Impact(dice.below(200_000) as u32),
            _ => ReloadStep::Export(match dice.percent(20) {
                true => Class::Background,
                false => Class::BestEffort(dice.below(7) as u8),
            }),
        }
    }
}

/// What is in force.
pub struct Reloads {
    /// Blocks of the volume.
    blocks: u64,
    /// Its exports in the loop.
    exports: Vec<usize>,
    /// A length that was ordered and not told yet.
    is_pending: bool,
}

impl Reloads {
    /// A service begins with a volume of so many blocks.
    pub fn begin(blocks: u64) -> Reloads {
        Reloads {
            blocks,
            exports: vec![0],
            is_pending: false,
        }
    }

    /// Blocks of the volume, as far as the world was told.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether a client may come: its size may be refused while the length changes.
    pub fn is_settled(&self) -> bool {
        !self.is_pending
    }

    /// One of the exports, by any number.
    pub fn export(&self, number: u64) -> usize {
        self.exports[(number % self.exports.len() as u64) as usize]
    }

    /// Does a step.
    pub fn act(&mut self, step: ReloadStep, setting: &Setting, (mailbox, told): (&Mailbox, &Tell)) {
        let told = Arc::clone(told);
        match step {
            ReloadStep::Resize { pages } => {
                self.resize(pages * PAGE_BLOCKS, setting, (mailbox, &told));
            }
            ReloadStep::Export(class) => order(mailbox, move |event_loop| {
                let first = event_loop.exports()[0].clone();
                let added = event_loop.add_export(Export { class, ..first });
                tell(&told, Told::Added(added));
            }),
            ReloadStep::Rename => {
                let length = setting.blocks * BLOCK;
                order(mailbox, move |event_loop| {
                    let first = event_loop.exports()[0].clone();
                    let offset = first.offset + length;
                    event_loop.add_export(Export { offset, ..first });
                });
            }
            ReloadStep::Impact(ppm) => order(mailbox, move |event_loop| {
                let now = event_loop.now();
                event_loop.engine().set_impact_budget(now, ppm);
            }),
            ReloadStep::TakeUp => {
                let belief = Setting {
                    belief: Belief::True,
                    policy: "sptf-sw60",
                    background: true,
                    ..setting.clone()
                };
                order(mailbox, move |event_loop| {
                    let (taken, _) = mpsc::channel();
                    let make = move |now| {
                        let policy = find(belief.policy).expect("a policy");
                        engine(&belief).starting_at(now).with_tracking(policy)
                    };
                    if let Err(refused) = event_loop.take_up(Box::new(make), taken) {
                        let reasons =
                            ["it follows", "being taken up", "being profiled", "a mirror"];
                        let is_fair = reasons.iter().any(|reason| refused.contains(reason));
                        assert!(is_fair, "{refused}");
                    }
                });
            }
            ReloadStep::Learn {
                seconds,
                granted_ppm,
            } => order(mailbox, move |event_loop| {
                let grant = LearningGrant {
                    budget: Duration::from_secs(seconds),
                    granted_ppm,
                };
                if let Err(refused) = event_loop.learn("it", &grant) {
                    let reasons = ["it follows", "being profiled", "being taken up", "a mirror"];
                    let is_fair = reasons.iter().any(|reason| refused.contains(reason));
                    assert!(is_fair, "{refused}");
                }
            }),
            ReloadStep::StopLearning => order(mailbox, EventLoop::stop_learning),
        }
    }

    /// Orders another length of the volume, unless one is on its way.
    pub fn resize(&mut self, blocks: u64, setting: &Setting, (mailbox, told): (&Mailbox, &Tell)) {
        if self.is_pending || blocks == self.blocks {
            return;
        }
        self.is_pending = true;
        let (told, origin, from) = (Arc::clone(told), setting.origin(), self.blocks);
        order(mailbox, move |event_loop| {
            let resize = Resize {
                volume: "v".to_owned(),
                offset: origin,
                from: from * BLOCK,
                to: blocks * BLOCK,
            };
            let resized = event_loop.resize(&[resize]);
            tell(&told, Told::Resized(resized.map(|()| blocks)));
        });
    }

    /// The volume has another export.
    pub fn added(&mut self, export: usize) {
        if !self.exports.contains(&export) {
            self.exports.push(export);
        }
    }

    /// The volume has another length, or keeps its own. The answer is the blocks that it has lost.
    pub fn resized(&mut self, resized: Result<u64, String>) -> Range<u64> {
        self.is_pending = false;
        match resized {
            Ok(blocks) => {
                let before = std::mem::replace(&mut self.blocks, blocks);
                blocks..before
            }
            Err(refused) => {
                let reasons = ["connections use it", "streams are on it", "checkpoint"];
                let is_fair = reasons.iter().any(|reason| refused.contains(reason));
                assert!(is_fair, "{refused}");
                0..0
            }
        }
    }
}

fn order(mailbox: &Mailbox, call: impl FnOnce(&mut EventLoop) + Send + 'static) {
    mailbox.call(call).expect("it runs");
}
