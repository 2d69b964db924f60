//! Any line of a service, as clients of streams read it: told apart, or refused in a sentence.
#![no_main]

use headtime_client::wire::{ServiceMessage, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| match parse(line) {
    Ok(ServiceMessage::Notice(told)) => {
        let line = server::control::protocol::told(&told);
        assert_eq!(parse(line.as_bytes()), Ok(ServiceMessage::Notice(told)));
    }
    Ok(_) => {}
    Err(problem) => assert!(!problem.is_empty()),
});
