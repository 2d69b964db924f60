//! The set of wanted blocks against a set of numbers.
