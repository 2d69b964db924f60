//! What the set of wanted blocks of the largest drive takes.
