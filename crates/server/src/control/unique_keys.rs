//! Refuses JSON with a key twice in one object, which readers understand in different ways.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Any JSON in which each object has each of its keys once.
pub(super) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UniqueKeysVisitor)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<UniqueKeys>()?;
            if let Some(twice) = keys.replace(key) {
                return Err(de::Error::custom(format_args!(
                    "the key {twice:?} twice: expected it once"
                )));
            }
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
        while items.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Option<String> {
        let read = serde_json::from_str::<UniqueKeys>(text);
        read.err().map(|error| error.to_string())
    }

    #[test]
    fn a_key_twice_in_one_object_is_refused_at_any_depth() {
        for good in [
            "{}",
            "[1, -2, 3.5, null, true, \"x\"]",
            r#"{"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 3}}"#,
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        for twice in [
            r#"{"ask": "status", "ask": "stop"}"#,
            r#"{"a": [{"ask": 1, "b": 2, "ask": 1}]}"#,
            r#"{"ask": 1, "\u0061sk": 2}"#,
        ] {
            let problem = problem(twice).expect(twice);
            assert!(problem.contains("the key \"ask\" twice"), "{problem}");
        }
    }
}
