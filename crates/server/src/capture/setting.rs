//! What an engine is made of: enough to make the same once more.

use std::sync::Arc;

use block::{Duration, Switch};
use drive::Profile;
use drive::firmware::Bus;
use engine::{Engine, Limits, Rules};
use scheduler::Preemption;
use scheduler::ordering::Phases;
use scheduler::policy::{NamedPolicy, find};

use super::numbers::{In, Out, Wrong};
use super::{preemption, rules};

/// What an engine is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What it believes of its drive.
    pub belief: Belief,
    /// Who chooses.
    pub policy: String,
    /// Whether it follows its drive.
    pub tracking: Tracking,
    /// Whether it takes background tasks.
    pub tasks: Tasks,
    /// Its bounds.
    pub limits: Limits,
    /// How larger requests step aside for more urgent ones, if they do.
    pub preemption: Option<Preemption>,
}

/// What is believed of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The profile's text.
    pub text: String,
    /// The switches as the host has set them.
    pub look_ahead: Switch,
    /// The same.
    pub write_cache: Switch,
    /// For how long a block is on the bus, if that is not as in the text.
    pub bus_block: Option<Duration>,
}

/// Whether an engine follows its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// It does not.
    Off,
    /// It does.
    On,
}

/// Whether an engine takes background tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// It does not.
    None,
    /// It does, under these rules.
    By(Rules),
}

/// Why no engine can be made of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the capture's {what}: {why}")]
pub struct Unfit {
    what: &'static str,
    why: String,
}

/// No engine of ours holds more requests: a million, a choice far above all limits.
const MOST_REQUESTS: u64 = 1 << 20;

impl Belief {
    /// Exactly what the text of a profile says.
    pub fn plain(text: impl Into<String>) -> Self {
        Belief {
            text: text.into(),
            look_ahead: Switch::On,
            write_cache: Switch::On,
            bus_block: None,
        }
    }

    /// The belief.
    ///
    /// # Errors
    /// If the text is no profile.
    pub fn profile(&self) -> Result<Profile, Unfit> {
        let unfit = |why: String| Unfit {
            what: "belief",
            why,
        };
        let profile = Profile::parse(&self.text, "the belief").map_err(|e| unfit(e.to_string()))?;
        let mut belief = profile.switched(self.look_ahead, self.write_cache);
        if let Some(block) = self.bus_block {
            belief.bus = Bus {
                read_block: block,
                write_block: block,
            };
        }
        Ok(belief)
    }
}

impl Setting {
    /// An engine that neither follows its drive nor takes background tasks.
    pub fn plain(belief: Belief, policy: NamedPolicy, limits: Limits) -> Self {
        Setting {
            belief,
            policy: policy.name(),
            tracking: Tracking::Off,
            tasks: Tasks::None,
            limits,
            preemption: None,
        }
    }

    /// A fresh engine.
    ///
    /// # Errors
    /// If the belief is no profile or nobody knows the policy.
    pub fn engine(&self) -> Result<Engine, Unfit> {
        let belief = Arc::new(self.belief.profile()?);
        let policy = find(&self.policy).map_err(|unknown| Unfit {
            what: "policy",
            why: unknown.to_string(),
        })?;
        let mut engine = Engine::new(belief, &|| policy.make(), self.limits);
        if self.tracking == Tracking::On {
            engine = engine.with_tracking(policy);
        }
        if let Tasks::By(rules) = self.tasks {
            engine = engine.with_background(rules);
        }
        if let Some(rules) = self.preemption {
            engine = engine.with_preemption(rules);
        }
        Ok(engine)
    }

    pub(super) fn encode(&self, out: &mut Out) {
        let Belief {
            text,
            look_ahead,
            write_cache,
            bus_block,
        } = &self.belief;
        out.bytes(text.as_bytes());
        for switch in [look_ahead, write_cache] {
            out.number(u64::from(*switch == Switch::On));
        }
        out.option(*bus_block, Out::duration);
        out.bytes(self.policy.as_bytes());
        out.number(u64::from(self.tracking == Tracking::On));
        match self.tasks {
            Tasks::None => out.number(0),
            Tasks::By(by) if by == Rules::default() => out.number(1),
            Tasks::By(by) => {
                out.number(2);
                rules::encode(&by, out);
            }
        }
        let Limits {
            requests,
            reserved_for_real_time,
            commands_at_drive,
            patience,
            phases,
        } = self.limits;
        for number in [requests, reserved_for_real_time, commands_at_drive] {
            out.number(number as u64);
        }
        out.duration(patience);
        match phases {
            Phases::Mixed => out.number(0),
            Phases::Alternate { read, write } => {
                out.number(1);
                out.duration(read);
                out.duration(write);
            }
        }
        // Captures of before there was such a thing end here, as those without it.
        if let Some(rules) = &self.preemption {
            preemption::encode(rules, out);
        }
    }

    pub(super) fn decode(from: &mut In<'_>) -> Result<Setting, Wrong> {
        let switch = |from: &mut In<'_>| {
            from.flag().map(|is_on| match is_on {
                true => Switch::On,
                false => Switch::Off,
            })
        };
        let belief = Belief {
            text: from.text()?.to_owned(),
            look_ahead: switch(from)?,
            write_cache: switch(from)?,
            bus_block: from.option(In::duration)?,
        };
        let policy = from.text()?.to_owned();
        let tracking = match from.flag()? {
            true => Tracking::On,
            false => Tracking::Off,
        };
        let tasks = match from.up_to(2, "no tasks, the default rules, or rules")? {
            0 => Tasks::None,
            1 => Tasks::By(Rules::default()),
            _ => Tasks::By(rules::decode(from)?),
        };
        let at = from.at();
        let mut number = || from.up_to(MOST_REQUESTS, "a limit of at most 2^20");
        let [requests, reserved, commands] = [number()?, number()?, number()?];
        let least = match tasks {
            Tasks::None => 1,
            // Free reads are given while the command before them is in service.
            Tasks::By(_) => 2,
        };
        if reserved >= requests || commands < least {
            return from.wrong(at, "limits under which something can be served");
        }
        let patience = from.duration()?;
        let phases = match from.flag()? {
            false => Phases::Mixed,
            true => Phases::Alternate {
                read: from.duration()?,
                write: from.duration()?,
            },
        };
        let preemption = match from.is_empty() {
            true => None,
            false => Some(preemption::decode(from)?),
        };
        Ok(Setting {
            belief,
            policy,
            tracking,
            tasks,
            limits: Limits {
                requests: requests as usize,
                reserved_for_real_time: reserved as usize,
                commands_at_drive: commands as usize,
                patience,
                phases,
            },
            preemption,
        })
    }
}
