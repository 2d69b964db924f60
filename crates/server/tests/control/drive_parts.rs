//! Parts of a known drive's status.

use server::status::{Classified, HeadComparison, SlowHead};

pub(super) fn classified() -> Vec<Classified> {
    let export = r#"{"export":"db","devices":["/dev/loop0"],"requests_total":81001,"unmatched_total":83,"lost_events_total":89}"#;
    vec![serde_json::from_str(export).expect("a status")]
}

pub(super) fn heads() -> HeadComparison {
    HeadComparison {
        compared_total: 91_009,
        late_total: 2_003,
        lost_percent: 2.25,
        recent_percent: Some(4.5),
        past_percent: Some(0.75),
        found_total: 1,
        slow: vec![SlowHead {
            head: 3,
            arm: 1,
            slower_percent: 21.25,
            before_percent: Some(0.5),
            found_s: 7_261.0,
            reads: 4_001,
            late: 797,
            first_cylinder: Some(2_048),
            last_cylinder: Some(4_095),
        }],
    }
}
