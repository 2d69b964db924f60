//! Classes of single requests, from the I/O priorities of the programs above a block device.
//!
//! ```text
//!   program --> block device --request--> NBD, FUSE with a loop device, ublk --> event loop
//!                    |                                                              |
//!                    '-- block_rq_issue: sector, length, ioprio, process -- ring --'  joined here
//! ```
//!
//! No front end is told the priority of a request. The kernel's tracepoint has it, and its event is in the
//! ring of a processor before the driver of the device gets the request. The loop reads the rings when a
//! request arrives, which needs no system call. A request without an event has the class of its export.
//!
//! | file | contents |
//! |---|---|
//! | `priority` | I/O priorities, and the rules that make classes of them |
//! | `table` | the join: events whose requests have not arrived |
//! | `format` | the layout of an event, from the kernel's description |
//! | `events` | the rings of the kernel |
//! | `devices` | block devices over an export |

use block::Class;

pub mod devices;
pub mod events;
pub mod format;
pub mod priority;
pub mod table;

use crate::status;
use devices::DeviceOver;
use events::{IssueEvents, TimedEvent};
use priority::{Rule, class_of};
use table::{IssuedTable, Origin};

/// The classified exports of a drive.
#[derive(Default)]
pub(crate) struct Classifiers {
    all: Vec<Classifier>,
}

/// A classified export.
struct Classifier {
    export: String,
    /// The indices of the export in the loop: a reload that changes the export gives it another one.
    indices: Vec<usize>,
    rules: Vec<Rule>,
    table: IssuedTable,
    watch: Watch,
    /// Events of one look at the rings. It keeps its memory.
    scratch: Vec<TimedEvent>,
    requests: u64,
    unmatched: u64,
    lost: u64,
}

/// The block devices over an export, and their events.
#[derive(Default)]
pub struct Watch {
    /// The devices. Empty as long as there is none.
    pub devices: Vec<DeviceOver>,
    /// The events of the devices.
    pub events: Option<Box<dyn IssueEvents>>,
    /// The reason for which there are no events, for people.
    pub problem: Option<String>,
}

impl Classifiers {
    /// Classifies the requests of an export, which has these indices in the loop.
    pub(crate) fn add(&mut self, export: String, indices: Vec<usize>, rules: Vec<Rule>) {
        self.all.push(Classifier {
            export,
            indices,
            rules,
            table: IssuedTable::default(),
            watch: Watch::default(),
            scratch: Vec::new(),
            requests: 0,
            unmatched: 0,
            lost: 0,
        });
    }

    /// An export has one more index.
    pub(crate) fn note_export(&mut self, name: &str, index: usize) {
        let mut named = self.all.iter_mut().filter(|one| one.export == name);
        if let Some(one) = named.next()
            && !one.indices.contains(&index)
        {
            one.indices.push(index);
        }
    }

    /// Watches these devices over an export. The answer is what was watched before: to close rings takes
    /// milliseconds, which another thread has.
    #[must_use]
    pub(crate) fn watch(&mut self, export: &str, watch: Watch) -> Watch {
        match self.all.iter_mut().find(|one| one.export == export) {
            Some(one) => std::mem::replace(&mut one.watch, watch),
            None => watch,
        }
    }

    /// The class of a request that arrives: of bytes of its volume, from a client of an export. `None` if
    /// it has the class of the export, which is `own`.
    pub(crate) fn class_of(
        &mut self,
        export: usize,
        (offset, length): (u64, u64),
        own: Class,
    ) -> Option<Class> {
        let one = (self.all.iter_mut()).find(|one| one.indices.contains(&export))?;
        one.read_events();
        if length == 0 || one.watch.events.is_none() {
            return None;
        }
        let origin = one.table.claim(offset, length);
        let Some(Origin {
            priority,
            purpose,
            process,
        }) = origin
        else {
            one.unmatched += 1;
            return None;
        };
        one.requests += 1;
        Some(class_of(&one.rules, own, priority, purpose, &process))
    }

    /// The exports in the status.
    pub(crate) fn status(&self) -> Vec<status::Classified> {
        let each = self.all.iter();
        each.map(|one| status::Classified {
            export: one.export.clone(),
            devices: (one.watch.devices.iter())
                .map(|device| device.name.clone())
                .collect(),
            problem: one.watch.problem.clone(),
            requests_total: one.requests,
            unmatched_total: one.unmatched,
            lost_events_total: one.lost + one.table.unclaimed(),
        })
        .collect()
    }
}

impl Classifier {
    /// Moves the events of the rings into the table, in the order of their times.
    fn read_events(&mut self) {
        let Some(events) = &mut self.watch.events else {
            return;
        };
        self.lost += events.drain(&mut self.scratch);
        self.scratch.sort_unstable_by_key(|event| event.at);
        for TimedEvent { at, event } in self.scratch.drain(..) {
            let mut devices = self.watch.devices.iter();
            let Some(device) = devices.find(|device| device.number == event.device) else {
                continue;
            };
            let start = event.sector.saturating_mul(SECTOR);
            let start = start.saturating_add(device.offset);
            let length = u64::from(event.sectors) * SECTOR;
            let origin = Origin {
                priority: event.priority,
                purpose: event.purpose,
                process: event.process,
            };
            self.table.issue(at, start, length, origin);
        }
    }
}

/// Bytes of a sector in events of block devices, whatever their blocks (linux/blk_types.h).
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::format::IssueEvent;
    use super::priority::{IoPriority, ProcessName, Purpose};
    use super::*;

    /// Events that a test puts there.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<(Vec<TimedEvent>, u64)>>);

    impl IssueEvents for Told {
        fn drain(&mut self, to: &mut Vec<TimedEvent>) -> u64 {
            let mut told = self.0.lock().expect("nobody panics");
            to.append(&mut told.0);
            std::mem::take(&mut told.1)
        }
    }

    impl Told {
        fn tell(&self, at: u64, device: u32, sector: u64, ioprio: u16) {
            let event = IssueEvent {
                device,
                sector,
                sectors: 8,
                priority: IoPriority::of(ioprio),
                purpose: Purpose::Other,
                process: ProcessName::default(),
            };
            let mut told = self.0.lock().expect("nobody panics");
            told.0.push(TimedEvent { at, event });
        }
    }

    const IDLE: u16 = 0x6000;
    const LAST: u16 = 0x4007;
    const FOREGROUND: Class = Class::BestEffort(0);

    fn scene() -> (Classifiers, Told) {
        let (mut all, told) = (Classifiers::default(), Told::default());
        all.add("db".to_owned(), vec![2], Vec::new());
        let device = |number, offset| DeviceOver {
            number,
            name: format!("/dev/loop{number}"),
            offset,
        };
        let before = all.watch(
            "db",
            Watch {
                devices: vec![device(7, 0), device(8, 1 << 20)],
                events: Some(Box::new(told.clone())),
                problem: None,
            },
        );
        assert!(before.devices.is_empty());
        (all, told)
    }

    #[test]
    fn a_request_has_the_class_of_its_event_and_without_one_that_of_the_export() {
        let (mut all, told) = scene();
        told.tell(1, 7, 8, IDLE);
        told.tell(2, 9, 16, IDLE);
        let mut ask = |offset| all.class_of(2, (offset, 4096), FOREGROUND);
        assert_eq!(ask(4096), Some(Class::Background));
        assert_eq!(ask(4096), None, "its event is used up");
        assert_eq!(ask(8192), None, "another device");
        told.0.lock().expect("nobody panics").1 = 3;
        assert_eq!(all.class_of(2, (0, 0), FOREGROUND), None, "a flush");
        assert_eq!(all.class_of(1, (4096, 4096), FOREGROUND), None);
        let status = &all.status()[0];
        assert_eq!((status.requests_total, status.unmatched_total), (1, 2));
        assert_eq!(status.lost_events_total, 3);
        assert_eq!(status.devices, ["/dev/loop7", "/dev/loop8"]);
    }

    #[test]
    fn events_of_several_rings_are_in_the_order_of_their_times() {
        let (mut all, told) = scene();
        // The ring that is read first has the later event of the same bytes.
        told.tell(20, 7, 8, LAST);
        told.tell(10, 7, 8, IDLE);
        let class = all.class_of(2, (4096, 4096), FOREGROUND);
        assert_eq!(class, Some(Class::BestEffort(6)), "the newest");
    }

    #[test]
    fn a_loop_device_that_begins_inside_of_the_file_is_told_from_its_begin() {
        let (mut all, told) = scene();
        told.tell(1, 8, 8, IDLE);
        let class = all.class_of(2, ((1 << 20) + 4096, 4096), FOREGROUND);
        assert_eq!(class, Some(Class::Background));
    }

    #[test]
    fn an_export_that_a_reload_changes_stays_classified() {
        let (mut all, told) = scene();
        all.note_export("other", 5);
        all.note_export("db", 5);
        told.tell(1, 7, 8, IDLE);
        let class = all.class_of(5, (4096, 4096), Class::BestEffort(3));
        assert_eq!(class, Some(Class::Background));
    }
}
