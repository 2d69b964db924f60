//! How users name a policy: the name in the table, and a number where the policy takes one.
//!
//! ```text
//!   sptf          has no parameter
//!   sptf-sw60     the policy sptf-sw, its parameter 60
//!   sptf-sw       the same: 60 is what it takes if nothing is said
//! ```

use std::fmt;

use super::{ALL, Depth, Make, Parameter, Policy, PolicyEntry};

/// A policy of the table, with its parameter: what a user's name for it means.
#[derive(Clone, Copy, Debug)]
pub struct NamedPolicy {
    /// Its line in the table.
    pub entry: &'static PolicyEntry,
    /// What its parameter is, if it takes one: within its range.
    parameter: Option<u32>,
}

/// Why a name means no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPolicy {
    /// Nothing in the table is called so.
    #[error("no policy is called \"{name}\": expected one of {}", usages().join(", "))]
    Name {
        /// What was asked for.
        name: String,
    },
    /// There is such a policy, but what stands behind its name is not its parameter.
    #[error("\"{name}\": expected {policy} and {parameter}, as in \"{policy}{}\"", parameter.default)]
    Parameter {
        /// What was asked for.
        name: String,
        /// The policy's name in the table.
        policy: &'static str,
        /// What it takes.
        parameter: &'static Parameter,
    },
}

impl NamedPolicy {
    /// What its parameter is, if it takes one.
    pub fn parameter(&self) -> Option<u32> {
        self.parameter
    }

    /// Its name with the parameter, by which [`find`] finds it again.
    pub fn name(&self) -> String {
        match self.parameter {
            Some(value) => format!("{}{value}", self.entry.name),
            None => self.entry.name.to_owned(),
        }
    }

    /// How many commands the drive should be given at once.
    pub fn depth(&self) -> Depth {
        self.entry.depth
    }

    /// Makes one.
    pub fn make(&self) -> Box<dyn Policy> {
        match &self.entry.make {
            Make::Plain(make) => make(),
            Make::With(parameter, make) => make(self.parameter.unwrap_or(parameter.default)),
        }
    }
}

/// Equal names mean equal policies: the table has each name once.
impl PartialEq for NamedPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.parameter == other.parameter
    }
}

impl Eq for NamedPolicy {}

/// The policy of the table with the parameter that it takes if nothing is said.
impl From<&'static PolicyEntry> for NamedPolicy {
    fn from(entry: &'static PolicyEntry) -> Self {
        NamedPolicy {
            entry,
            parameter: entry.parameter().map(|parameter| parameter.default),
        }
    }
}

impl PolicyEntry {
    /// What it takes, if it takes something.
    pub fn parameter(&self) -> Option<&Parameter> {
        match &self.make {
            Make::Plain(_) => None,
            Make::With(parameter, _) => Some(parameter),
        }
    }

    /// How it is written, for help texts: `sptf`, `sptf-sw[N]`.
    pub fn usage(&self) -> String {
        match self.parameter() {
            None => self.name.to_owned(),
            Some(_) => format!("{}[N]", self.name),
        }
    }
}

/// "a whole number of percent from 0 to 1000".
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.range.start(), self.range.end());
        write!(f, "a whole number of {} from {first} to {last}", self.unit)
    }
}

/// The policy that a user means.
///
/// # Errors
/// If there is none of this name, or what stands behind the name is not its parameter; the error
/// says what was expected.
pub fn find(name: &str) -> Result<NamedPolicy, UnknownPolicy> {
    if let Some(entry) = ALL.iter().find(|entry| entry.name == name) {
        return Ok(NamedPolicy::from(entry));
    }
    let stem = |entry: &&PolicyEntry| {
        entry.parameter().is_some() && name.strip_prefix(entry.name).is_some()
    };
    // Of two names of which one begins with the other, the longer is meant.
    let Some(entry) = ALL.iter().filter(stem).max_by_key(|e| e.name.len()) else {
        return Err(UnknownPolicy::Name {
            name: name.to_owned(),
        });
    };
    let (Make::With(parameter, _), Some(number)) = (&entry.make, name.strip_prefix(entry.name))
    else {
        unreachable!("only names with a parameter were looked at");
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(value) if digits && parameter.range.contains(&value) => Ok(NamedPolicy {
            entry,
            parameter: Some(value),
        }),
        _ => Err(UnknownPolicy::Parameter {
            name: name.to_owned(),
            policy: entry.name,
            parameter,
        }),
    }
}

/// How the policies in the table are written, for messages.
pub fn usages() -> Vec<String> {
    ALL.iter().map(PolicyEntry::usage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (index, entry) in ALL.iter().enumerate() {
            let found = find(entry.name).expect("every name in the table is found");
            assert_eq!(found, NamedPolicy::from(entry));
            assert_eq!(find(&found.name()), Ok(found));
            assert!(ALL[..index].iter().all(|other| other.name != entry.name));
        }
    }

    #[test]
    fn a_parameter_stands_behind_the_name_and_has_a_default_within_its_range() {
        let sixty = find("sptf-sw60").expect("a policy of the table");
        assert_eq!((sixty.entry.name, sixty.parameter()), ("sptf-sw", Some(60)));
        assert_eq!(find("sptf-sw"), Ok(sixty));
        assert_eq!(find("sptf-sw060"), Ok(sixty));
        let none = find("sptf-sw0").expect("the least");
        assert_ne!(none, sixty);
        assert_eq!(none.name(), "sptf-sw0");
        for parameter in ALL.iter().filter_map(PolicyEntry::parameter) {
            assert!(parameter.range.contains(&parameter.default));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in ["elevator", "", "sptf60", "sptfx", "drive1"] {
            let error = find(name).expect_err("no such policy").to_string();
            let said = format!("no policy is called \"{name}\": expected one of fcfs, ");
            assert!(error.starts_with(&said), "{error}");
            assert!(error.contains("sptf, sptf-sw[N], "), "{error}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_answered_with_what_was_expected() {
        let names = [
            "sptf-swx",
            "sptf-sw1001",
            "sptf-sw-1",
            "sptf-sw+5",
            "sptf-sw60%",
        ];
        for name in names {
            assert_eq!(
                find(name).expect_err("no such parameter").to_string(),
                format!(
                    "\"{name}\": expected sptf-sw and a whole number of percent from 0 to 1000, \
                     as in \"sptf-sw60\""
                )
            );
        }
    }
}
