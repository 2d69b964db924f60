//! The names of policies for users: a name of the table, and a number if the policy has a
//! parameter.
//!
//! ```text
//!   sptf          has no parameter
//!   sptf-sw60     the policy sptf-sw, its parameter 60
//!   sptf-sw       the same: 60 is the default
//! ```

use std::fmt;

use super::{ALL, Depth, Make, Parameter, Policy, PolicyEntry};

/// A policy of the table with its parameter.
#[derive(Clone, Copy, Debug)]
pub struct NamedPolicy {
    /// The policy's entry in the table.
    pub entry: &'static PolicyEntry,
    /// The parameter's value within its range, if the policy has one.
    parameter: Option<u32>,
}

/// The reason that a name means no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPolicy {
    /// The table has no such name.
    #[error("no policy is called \"{name}\": expected one of {}", usages().join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// The text behind a policy's name is not its parameter.
    #[error("\"{name}\": expected {policy} and {parameter}, as in \"{policy}{}\"", parameter.default)]
    Parameter {
        /// The name.
        name: String,
        /// The policy's name in the table.
        policy: &'static str,
        /// The policy's parameter.
        parameter: &'static Parameter,
    },
}

impl NamedPolicy {
    /// The parameter's value, if the policy has one.
    pub fn parameter(&self) -> Option<u32> {
        self.parameter
    }

    /// The name with the parameter, which [`find`] accepts.
    pub fn name(&self) -> String {
        match self.parameter {
            Some(value) => format!("{}{value}", self.entry.name),
            None => self.entry.name.to_owned(),
        }
    }

    /// The number of commands that the drive should hold.
    pub fn depth(&self) -> Depth {
        self.entry.depth
    }

    /// Makes a policy.
    pub fn make(&self) -> Box<dyn Policy> {
        match &self.entry.make {
            Make::Plain(make) => make(),
            Make::With(parameter, make) => make(self.parameter.unwrap_or(parameter.default)),
        }
    }
}

/// Equal names mean equal policies, because the table has each name once.
impl PartialEq for NamedPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.parameter == other.parameter
    }
}

impl Eq for NamedPolicy {}

/// The policy of an entry with the default parameter.
impl From<&'static PolicyEntry> for NamedPolicy {
    fn from(entry: &'static PolicyEntry) -> Self {
        NamedPolicy {
            entry,
            parameter: entry.parameter().map(|parameter| parameter.default),
        }
    }
}

impl PolicyEntry {
    /// The parameter, if the policy has one.
    pub fn parameter(&self) -> Option<&Parameter> {
        match &self.make {
            Make::Plain(_) => None,
            Make::With(parameter, _) => Some(parameter),
        }
    }

    /// The notation for help texts: `sptf`, `sptf-sw[N]`.
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

/// Finds a policy by its name.
///
/// # Errors
/// If the table has no such name, or the text behind the name is not the policy's parameter.
pub fn find(name: &str) -> Result<NamedPolicy, UnknownPolicy> {
    if let Some(entry) = ALL.iter().find(|entry| entry.name == name) {
        return Ok(NamedPolicy::from(entry));
    }
    let stem = |entry: &&PolicyEntry| {
        entry.parameter().is_some() && name.strip_prefix(entry.name).is_some()
    };
    // Of two names with a common beginning, the longer one counts.
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

/// The notations of all policies, for messages.
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
