//! Any text as a claims file: refused in one line, or a paper each of whose claims can be judged.
#![no_main]

use lab::claims::Paper;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Paper::parse("fuzz.toml", text) {
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
        Ok(paper) => {
            assert!(!paper.claims.is_empty());
            for claim in &paper.claims {
                assert!(!claim.figures.is_empty() || claim.shape.is_some());
                assert_eq!(paper.claim(&claim.id), Some(claim));
                for figure in &claim.figures {
                    assert!(!figure.theirs.agrees(f64::NAN));
                    assert_eq!(claim.figure(figure.name.as_deref()), Some(figure));
                }
            }
        }
    }
});
