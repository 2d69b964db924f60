//! The service in a kernel of its own (see the crate `guest`).

mod adopting;
mod classified;
mod device;
mod named;
mod probing;
mod ublk;

/// Asserts that a text has all of these, one after the other.
fn assert_says_in_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for expected in expected {
        let after = rest.split_once(expected);
        let after = after.unwrap_or_else(|| panic!("no `{expected}` there in:\n{text}"));
        rest = after.1;
    }
}
