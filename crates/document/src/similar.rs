//! Suggestions for mistyped names.

/// The known name that is most similar to a mistyped one, if any is similar.
pub fn most_similar<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .map(|other| (strsim::normalized_damerau_levenshtein(name, other), other))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other)
}

/// The least similarity of a suggestion. A choice: one wrong letter in three is still a typing error.
const SIMILAR: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_letters_may_be_wrong() {
        let known = ["origin", "name", "spares"];
        let similar = |name| most_similar(name, known.into_iter());
        assert_eq!(similar("orgin"), Some("origin"));
        assert_eq!(similar("nmae"), Some("name"));
        assert_eq!(similar("colour"), None);
        assert_eq!(most_similar("origin", std::iter::empty()), None);
    }
}
