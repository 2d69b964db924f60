//! Any line at the control socket: refused in one line, or a request that survives the way back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use server::control::protocol::{Answer, parse, request};

fuzz_target!(|line: &[u8]| match parse(line) {
    Ok(ask) => {
        let written = request(&ask);
        assert_eq!(parse(written.trim_end().as_bytes()), Ok(ask));
    }
    Err(problem) => {
        let line = Answer::refusal(problem).line();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
    }
});
