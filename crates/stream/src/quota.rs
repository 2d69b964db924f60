//! Who may have how many streams, how much rate, how much of the head.
//!
//! A stream belongs to a user (the peer's uid) and has a name. Rules are tried in their order; the
//! first that fits both decides, and what it allows is shared by all streams that it decides.
//! Without a rule that fits, the stream is refused: an empty list allows nobody, and
//! [`Quotas::open`] everybody.

use crate::rate::{Rate, SECOND};

/// Whose streams a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody's.
    Anyone,
    /// Those of a user.
    User(u32),
    /// Those whose name begins so.
    Named(String),
    /// Those of a user whose name begins so.
    UserNamed(u32, String),
}

/// A rule: at most so much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whom it is about.
    pub who: Who,
    /// Streams at once.
    pub streams: usize,
    /// All their rates together, in bytes in a second.
    pub rate: u64,
    /// All their shares of the head at worst, each as if it were alone, in thousandths.
    pub head_permille: u64,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The peer's uid.
    pub user: u32,
    /// The stream's name.
    pub name: &'a str,
    /// Its rate.
    pub rate: Rate,
    /// Its share of the head as if it were alone, in billionths.
    pub head: u64,
}

/// Why a stream may not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// No rule is about it.
    #[error("user {user} may have no stream named \"{name}\": no rule allows it")]
    NotAllowed {
        /// The uid.
        user: u32,
        /// The name.
        name: String,
    },
    /// Too many.
    #[error("rule {rule}: {limit} streams at once, and all are there")]
    Streams {
        /// The number of the rule, from 0.
        rule: usize,
        /// Its limit.
        limit: usize,
    },
    /// Too fast.
    #[error("rule {rule}: {limit} bytes in a second together, of which {left} are left")]
    Rate {
        /// The number of the rule, from 0.
        rule: usize,
        /// Its limit.
        limit: u64,
        /// What is left of it.
        left: u64,
    },
    /// Too much of the head.
    #[error("rule {rule}: {limit}/1000 of the head together, of which {left} are left")]
    Head {
        /// The number of the rule, from 0.
        rule: usize,
        /// Its limit.
        limit: u64,
        /// What is left of it.
        left: u64,
    },
}

/// What was taken; to be given back.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    rule: usize,
    rate: u64,
    head: u64,
}

/// The rules, and what was taken of each.
#[derive(Clone, Debug)]
pub struct Quotas {
    rules: Vec<(Rule, Used)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    streams: usize,
    rate: u64,
    head: u64,
}

impl Quotas {
    /// These rules, in this order.
    pub fn new(rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| (rule, Used::default()));
        Quotas {
            rules: rules.collect(),
        }
    }

    /// Everybody may have everything.
    pub fn open() -> Self {
        Quotas::new(vec![Rule {
            who: Who::Anyone,
            streams: usize::MAX,
            rate: u64::MAX,
            head_permille: u64::MAX,
        }])
    }

    /// Takes what is claimed.
    ///
    /// # Errors
    /// If no rule allows it, or the first that is about it does not.
    pub fn take(&mut self, claim: Claim<'_>) -> Result<Taken, Exceeded> {
        let index = self
            .rules
            .iter()
            .position(|(rule, _)| rule.is_about(&claim));
        let Some(index) = index else {
            return Err(Exceeded::NotAllowed {
                user: claim.user,
                name: claim.name.to_owned(),
            });
        };
        let (rule, used) = &mut self.rules[index];
        if used.streams >= rule.streams {
            return Err(Exceeded::Streams {
                rule: index,
                limit: rule.streams,
            });
        }
        let left = rule.rate - used.rate;
        if claim.rate.bytes() > left {
            return Err(Exceeded::Rate {
                rule: index,
                limit: rule.rate,
                left,
            });
        }
        let left = rule.head_permille.saturating_mul(SECOND / 1000) - used.head;
        if claim.head > left {
            return Err(Exceeded::Head {
                rule: index,
                limit: rule.head_permille,
                left: left / (SECOND / 1000),
            });
        }
        used.streams += 1;
        used.rate += claim.rate.bytes();
        used.head += claim.head;
        Ok(Taken {
            rule: index,
            rate: claim.rate.bytes(),
            head: claim.head,
        })
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, taken: Taken) {
        let (_, used) = &mut self.rules[taken.rule];
        used.streams -= 1;
        used.rate -= taken.rate;
        used.head -= taken.head;
    }
}

impl Rule {
    fn is_about(&self, claim: &Claim<'_>) -> bool {
        match &self.who {
            Who::Anyone => true,
            Who::User(user) => *user == claim.user,
            Who::Named(name) => claim.name.starts_with(name.as_str()),
            Who::UserNamed(user, name) => {
                *user == claim.user && claim.name.starts_with(name.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(user: u32, name: &str, rate: u64) -> Claim<'_> {
        Claim {
            user,
            name,
            rate: Rate::new(rate).expect("not zero"),
            head: SECOND / 10,
        }
    }

    fn rule(who: Who) -> Rule {
        Rule {
            who,
            streams: 2,
            rate: 100,
            head_permille: 250,
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let mut quotas = Quotas::new(vec![
            rule(Who::UserNamed(7, "camera-".into())),
            Rule {
                streams: 0,
                ..rule(Who::Named("camera-".into()))
            },
            rule(Who::User(7)),
        ]);
        assert!(quotas.take(claim(7, "camera-1", 10)).is_ok());
        let streams = |rule, limit| Err(Exceeded::Streams { rule, limit });
        assert_eq!(quotas.take(claim(8, "camera-1", 10)), streams(1, 0));
        assert!(quotas.take(claim(7, "film", 10)).is_ok());
        let nobody = Exceeded::NotAllowed {
            user: 8,
            name: "film".into(),
        };
        assert_eq!(quotas.take(claim(8, "film", 10)), Err(nobody));
    }

    #[test]
    fn every_limit_holds_until_something_is_given_back() {
        let mut quotas = Quotas::new(vec![rule(Who::Anyone)]);
        let first = quotas.take(claim(1, "a", 60)).expect("within all limits");
        let (rule, limit) = (0, 100);
        let refused = quotas.take(claim(2, "b", 41));
        assert_eq!(
            refused,
            Err(Exceeded::Rate {
                rule,
                limit,
                left: 40
            })
        );
        let second = quotas.take(claim(2, "b", 40)).expect("within all limits");
        let refused = quotas.take(claim(3, "c", 1));
        assert_eq!(refused, Err(Exceeded::Streams { rule, limit: 2 }));
        quotas.give_back(second);
        let hungry = Claim {
            head: SECOND / 5,
            ..claim(3, "c", 1)
        };
        let refused = quotas.take(hungry);
        assert_eq!(
            refused,
            Err(Exceeded::Head {
                rule,
                limit: 250,
                left: 150
            })
        );
        quotas.give_back(first);
        assert!(quotas.take(hungry).is_ok());
    }
}
