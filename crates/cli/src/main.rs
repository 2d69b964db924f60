//! headtime
fn main() {}
