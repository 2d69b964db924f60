//! Classes of single operations, from events of block devices over an export.

use block::operation::Ask;
use block::{Class, Owner};

use crate::classify::Watch;
use crate::classify::devices::DeviceOver;
use crate::classify::events::{IssueEvents, TimedEvent};
use crate::classify::format::IssueEvent;
use crate::classify::priority::{IoPriority, ProcessName, Purpose};
use crate::event_loop::by_hand::{BLOCK, ByHand, Setup, export};
use crate::volume::operation::Operation;

/// Events of these sectors, in idle class, at the first look.
struct Idle(Vec<u64>);

impl IssueEvents for Idle {
    fn drain(&mut self, to: &mut Vec<TimedEvent>) -> u64 {
        for sector in self.0.drain(..) {
            let event = IssueEvent {
                device: 7,
                sector,
                sectors: 8,
                priority: IoPriority::of(0x6000),
                purpose: Purpose::Other,
                process: ProcessName::default(),
            };
            to.push(TimedEvent { at: sector, event });
        }
        0
    }
}

fn watch(sectors: &[u64]) -> Watch {
    Watch {
        devices: vec![DeviceOver {
            number: 7,
            name: "/dev/loop7".to_owned(),
            offset: 0,
        }],
        events: Some(Box::new(Idle(sectors.to_vec()))),
        problem: None,
    }
}

fn read(export: usize, sector: u64) -> Operation {
    Operation {
        export,
        ask: Ask::Read,
        offset: sector * BLOCK,
        length: 8 * BLOCK,
        owner: Owner::NOBODY,
        class: None,
    }
}

#[test]
fn operations_of_a_classified_export_have_the_class_of_their_events() {
    let mut setup = Setup::of_blocks(1 << 10);
    let size = (1 << 10) * BLOCK / 2;
    setup.exports = vec![export("v0", 0, size), export("v1", size, size)];
    let mut by_hand = ByHand::new(setup);
    let volumes = by_hand.volumes();
    // Another export of the same name from before, such as one of another length.
    let shorter = export("v1", size, BLOCK);
    assert_eq!(volumes.add_export(shorter.clone()), 2);
    volumes.classify_export("v1".to_owned(), Vec::new());
    let before = volumes.watch("v1", watch(&[0, 8, 16, 24]));
    assert!(before.devices.is_empty(), "nothing was watched");
    let idle = Some(Class::Background);
    let class = |volumes: &mut crate::volume::Volumes, export, sector| {
        volumes.classified(read(export, sector)).class
    };
    assert_eq!(class(volumes, 0, 0), None, "another export");
    assert_eq!(class(volumes, 1, 0), idle);
    assert_eq!(class(volumes, 2, 8), idle);
    assert_eq!(class(volumes, 1, 32), None, "no event");
    assert_eq!(class(volumes, 9, 0), None, "no export");
    let later = export("v1", size, 2 * BLOCK);
    assert_eq!(volumes.add_export(later), 3);
    assert_eq!(class(volumes, 3, 16), idle, "a reload adds one");
    assert_eq!(volumes.add_export(shorter), 2, "it is there");
    let other = export("v2", 0, BLOCK);
    assert_eq!(volumes.add_export(other), 4);
    assert_eq!(class(volumes, 4, 24), None);
    let operation = volumes.classified(read(1, 24));
    assert_eq!(
        (operation.offset, operation.length, operation.export),
        (24 * BLOCK, 8 * BLOCK, 1)
    );
    assert_eq!(operation.class, idle);
    assert_eq!(
        volumes.operations.exports.class(&operation),
        Class::Background
    );
    assert_eq!(
        volumes.operations.exports.class(&read(1, 0)),
        Class::default()
    );
    let watched = volumes.watch("v1", watch(&[]));
    assert_eq!(watched.devices.len(), 1, "the one from before");
}
