//! Why requests were slow, of all drives.

use super::Running;
use super::drives::Drive;
use crate::accounts::slowest::{KEPT, WHILE};
use crate::why::{Query, Slow};

impl Running {
    /// The slowest requests that are asked for, the slowest first.
    ///
    /// # Errors
    /// If there are none: what to do.
    pub(super) fn slow(&self, query: &Query) -> Result<Vec<Slow>, String> {
        let mut slow = Vec::new();
        for drive in &self.drives {
            let asked = query.clone();
            let told = Self::asked(drive.mailbox(), move |event_loop| {
                event_loop.slowest(&asked)
            });
            let name = drive.name();
            let told = told.ok_or_else(|| format!("drive {name} does not answer"))?;
            slow.extend(told.into_iter().map(|slow| Slow {
                drive: name.to_owned(),
                ..slow
            }));
        }
        slow.sort_by(|a, b| b.response_us.total_cmp(&a.response_us));
        slow.truncate(query.slowest.unwrap_or(u32::MAX) as usize);
        match (query.request, &slow[..]) {
            (_, []) => Err(self.none(query)),
            (Some(number), [one, other, ..]) => Err(format!(
                "exports {} and {} of two drives have a request {number}: expected --export, too",
                one.export, other.export
            )),
            _ => Ok(slow),
        }
    }

    /// What there is to be done where nothing was found.
    fn none(&self, query: &Query) -> String {
        let names: Vec<String> = self.drives.iter().flat_map(Drive::exports).collect();
        if let Some(export) = &query.export
            && !names.contains(export)
        {
            return format!("no export {export}: expected one of {}", names.join(", "));
        }
        let (kept, minutes) = (KEPT, WHILE.as_secs_f64() / 60.0);
        match query.request {
            Some(number) => format!(
                "request {number} is not kept: the {kept} slowest of each export are, for \
                 {minutes:.0} minutes at least; expected a number that `headtime why` lists"
            ),
            None => format!(
                "no request has ended in the last {minutes:.0} minutes: expected some load, and \
                 the question again"
            ),
        }
    }
}
