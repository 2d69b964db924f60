//! Names with parameters, as users write them: `linux-6`, `ra(p=8)`, `pfc(a3=half,a4=veto)`.
//!
//! Each table of algorithms declares the parameters of its entries. This module parses the names,
//! and its errors say what was expected.

use std::ops::RangeInclusive;

/// A parameter of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key for users.
    pub key: &'static str,
    /// The parameter in one sentence, with the origin of the default.
    pub what: &'static str,
    /// The legal values.
    pub values: Values,
}

/// The legal values of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// A number.
    Number {
        /// The smallest and the largest value.
        range: RangeInclusive<u64>,
        /// The default.
        default: u64,
    },
    /// One of these words; the first is the default.
    Words(&'static [&'static str]),
}

/// The values of all parameters of one algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlgorithmSettings {
    parameters: &'static [Parameter],
    values: Vec<u64>,
}

/// Declares the words of a parameter: an `enum`, the words of its variants, and the conversion from
/// [`AlgorithmSettings`]. The first word is the default.
macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident { $( $(#[$what:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$what])* $variant, )+ }

        impl $name {
            /// The words for users.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The current value.
            fn of(settings: &$crate::settings::AlgorithmSettings, key: &str) -> Self {
                const ALL: &[$name] = &[$($name::$variant),+];
                ALL[settings.get(key) as usize]
            }
        }
    };
}

pub(crate) use words;

/// An entry of a table of algorithms.
pub trait Named {
    /// The name for users.
    fn name(&self) -> &'static str;
    /// The parameters.
    fn parameters(&self) -> &'static [Parameter];
}

/// The reason that a text names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// The name is unknown.
    #[error("{kind} \"{name}\": expected one of {known}")]
    Unknown {
        /// The kind of algorithm.
        kind: &'static str,
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// The parameter list is malformed.
    #[error("\"{text}\": expected NAME or NAME(KEY=VALUE,KEY=VALUE)")]
    Form {
        /// The text.
        text: String,
    },
    /// The algorithm has no such parameter.
    #[error("{name}: parameter \"{key}\": expected one of {known}")]
    Key {
        /// The algorithm.
        name: &'static str,
        /// The key.
        key: String,
        /// All keys.
        known: String,
    },
    /// The parameter is set twice.
    #[error("{name}: parameter \"{key}\" is there twice: expected it once")]
    Twice {
        /// The algorithm.
        name: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The value is illegal.
    #[error("{name}: {key} = \"{value}\": expected {expected}")]
    Value {
        /// The algorithm.
        name: &'static str,
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The legal values.
        expected: String,
    },
}

impl AlgorithmSettings {
    /// The defaults of all parameters.
    pub fn of(parameters: &'static [Parameter]) -> Self {
        let default = |parameter: &Parameter| match parameter.values {
            Values::Number { default, .. } => default,
            Values::Words(_) => 0,
        };
        AlgorithmSettings {
            parameters,
            values: parameters.iter().map(default).collect(),
        }
    }

    /// The value of a parameter: a number, or the index of the word.
    ///
    /// # Panics
    /// If the algorithm has no such parameter. Only its own constructor calls this, and the tests
    /// make all.
    pub fn get(&self, key: &str) -> u64 {
        let found = self.parameters.iter().position(|one| one.key == key);
        self.values[found.expect("a constructor asks for a parameter of its own line")]
    }

    /// Sets a parameter from a key and a value as users write them.
    fn set(&mut self, name: &'static str, key: &str, value: &str) -> Result<usize, BadSettings> {
        let parameters = self.parameters;
        let Some(place) = parameters.iter().position(|one| one.key == key) else {
            return Err(BadSettings::Key {
                name,
                key: key.to_owned(),
                known: listed(parameters.iter().map(|one| one.key)),
            });
        };
        let parameter = &parameters[place];
        self.values[place] = parameter
            .values
            .read(value)
            .ok_or_else(|| BadSettings::Value {
                name,
                key: parameter.key,
                value: value.to_owned(),
                expected: parameter.values.expected(),
            })?;
        Ok(place)
    }
}

impl Values {
    fn read(&self, text: &str) -> Option<u64> {
        match self {
            Values::Number { range, .. } => text.parse().ok().filter(|value| range.contains(value)),
            Values::Words(words) => {
                let place = words.iter().position(|&word| word == text)?;
                Some(place as u64)
            }
        }
    }

    fn expected(&self) -> String {
        match self {
            Values::Number { range, .. } => {
                format!("a whole number, {} to {}", range.start(), range.end())
            }
            Values::Words(words) => format!("one of {}", listed(words.iter().copied())),
        }
    }
}

/// The entry of the table that a text names, and its settings.
///
/// # Errors
/// If the name or a parameter is unknown, or a value is illegal.
pub fn find<'a, T: Named>(
    kind: &'static str,
    text: &str,
    table: &'a [T],
) -> Result<(&'a T, AlgorithmSettings), BadSettings> {
    let form = || BadSettings::Form {
        text: text.to_owned(),
    };
    let (name, list) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(form)?),
    };
    let Some(entry) = table.iter().find(|entry| entry.name() == name) else {
        return Err(BadSettings::Unknown {
            kind,
            name: name.to_owned(),
            known: listed(table.iter().map(Named::name)),
        });
    };
    let mut settings = AlgorithmSettings::of(entry.parameters());
    let mut set = vec![false; settings.values.len()];
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(form)?;
        let place = settings.set(entry.name(), key.trim(), value.trim())?;
        if std::mem::replace(&mut set[place], true) {
            return Err(BadSettings::Twice {
                name: entry.name(),
                key: settings.parameters[place].key,
            });
        }
    }
    Ok((entry, settings))
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    if words.is_empty() {
        return "none".to_owned();
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{AlgorithmSettings, BadSettings, Named, Parameter, Values, find};

    struct Line(&'static str, &'static [Parameter]);

    impl Named for Line {
        fn name(&self) -> &'static str {
            self.0
        }

        fn parameters(&self) -> &'static [Parameter] {
            self.1
        }
    }

    const TABLE: &[Line] = &[
        Line("plain", &[]),
        Line(
            "set",
            &[
                Parameter {
                    key: "p",
                    what: "A number.",
                    values: Values::Number {
                        range: 1..=9,
                        default: 4,
                    },
                },
                Parameter {
                    key: "how",
                    what: "A word.",
                    values: Values::Words(&["so", "otherwise"]),
                },
            ],
        ),
    ];

    fn read(text: &str) -> Result<AlgorithmSettings, BadSettings> {
        find("thing", text, TABLE).map(|(_, settings)| settings)
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let settings = read("set").expect("a name of the table");
        assert_eq!((settings.get("p"), settings.get("how")), (4, 0));
        let settings = read("set(how=otherwise, p=9)").expect("both can be set");
        assert_eq!((settings.get("p"), settings.get("how")), (9, 1));
        assert!(read("plain").is_ok() && read("plain()").is_ok());
    }

    #[test]
    fn an_error_says_what_was_expected() {
        for (text, message) in [
            ("sett", "thing \"sett\": expected one of plain, set"),
            ("", "thing \"\": expected one of plain, set"),
            (
                "set(p=10)",
                "set: p = \"10\": expected a whole number, 1 to 9",
            ),
            (
                "set(p=-1)",
                "set: p = \"-1\": expected a whole number, 1 to 9",
            ),
            (
                "set(how=no)",
                "set: how = \"no\": expected one of so, otherwise",
            ),
            ("set(q=1)", "set: parameter \"q\": expected one of p, how"),
            ("plain(q=1)", "plain: parameter \"q\": expected one of none"),
            (
                "set(p=1,p=2)",
                "set: parameter \"p\" is there twice: expected it once",
            ),
            (
                "set(p=1",
                "\"set(p=1\": expected NAME or NAME(KEY=VALUE,KEY=VALUE)",
            ),
            (
                "set(p)",
                "\"set(p)\": expected NAME or NAME(KEY=VALUE,KEY=VALUE)",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }
}
