//! I/O priorities of programs, and the rules that make classes of them.
//!
//! ```text
//!   15    13 12        3 2     0
//!   | class |   hint    | level |     ioprio (linux/ioprio.h)
//! ```

use block::Class;

/// The I/O priority of a request (ioprio_set(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoPriority {
    /// The class.
    pub class: IoClass,
    /// The level in the class, from 0 (most urgent) to 7.
    pub level: u8,
}

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// The program has set none.
    None,
    /// Real time.
    RealTime,
    /// Best effort. The kernel derives the level from the nice value if the program has set none.
    BestEffort,
    /// Idle.
    Idle,
}

impl IoPriority {
    /// The priority of a number of the kernel. An unknown class counts as none.
    pub fn of(number: u16) -> Self {
        let class = match number >> CLASS_SHIFT {
            1 => IoClass::RealTime,
            2 => IoClass::BestEffort,
            3 => IoClass::Idle,
            _ => IoClass::None,
        };
        IoPriority {
            class,
            level: (number & LEVEL_MASK) as u8,
        }
    }
}

/// `IOPRIO_CLASS_SHIFT` of linux/ioprio.h.
const CLASS_SHIFT: u32 = 13;
/// `IOPRIO_LEVEL_MASK` of linux/ioprio.h.
const LEVEL_MASK: u16 = 7;

/// The name of a process as the kernel keeps it: at most 15 bytes, then zeroes (`TASK_COMM_LEN`).
pub type ProcessName = [u8; 16];

/// The use of a request for the file system above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A write of the file system's own structures, such as its journal (`REQ_META` of linux/blk_types.h).
    MetadataWrite,
    /// Everything else: data, and all reads.
    Other,
}

impl Purpose {
    /// The purpose of a request with these letters, the field `rwbs` of tracepoints (`blk_fill_rwbs` of Linux).
    pub fn of(letters: &[u8]) -> Self {
        let until_zero = letters.split(|&letter| letter == 0).next();
        let has = |letter| until_zero.is_some_and(|letters| letters.contains(&letter));
        match has(b'W') && has(b'M') {
            true => Purpose::MetadataWrite,
            false => Purpose::Other,
        }
    }
}

/// The programs that a rule is about. A part that is `None` fits all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The class of the I/O priority.
    pub priority: Option<IoClass>,
    /// The level of the I/O priority.
    pub level: Option<u8>,
    /// The name of the process that issues the request.
    pub process: Option<ProcessName>,
    /// The class of the requests.
    pub class: Class,
}

impl Rule {
    fn fits(&self, priority: IoPriority, process: &ProcessName) -> bool {
        self.priority.is_none_or(|class| class == priority.class)
            && self.level.is_none_or(|level| level == priority.level)
            && self.process.as_ref().is_none_or(|name| name == process)
    }
}

/// The class of a request: that of the first rule that fits. Without one an I/O priority may lower the
/// class of the export, and never raises it. It does not lower that of a write of metadata: every program that
/// flushes waits for the journal, whoever wrote to it last.
pub fn class_of(
    rules: &[Rule],
    export: Class,
    priority: IoPriority,
    purpose: Purpose,
    process: &ProcessName,
) -> Class {
    let fitting = rules.iter().find(|rule| rule.fits(priority, process));
    match (fitting, priority.class, export) {
        (Some(rule), ..) => rule.class,
        (None, ..) if purpose == Purpose::MetadataWrite => export,
        (None, IoClass::Idle, _) => Class::Background,
        (None, IoClass::BestEffort, Class::BestEffort(own)) => {
            let below = priority.level.saturating_sub(USUAL_LEVEL);
            Class::BestEffort((own + below * CLASSES_A_LEVEL).min(LAST_CLASS))
        }
        (None, ..) => export,
    }
}

/// The level of a program that has set none and is not nice (`IOPRIO_BE_NORM` of linux/ioprio.h).
const USUAL_LEVEL: u8 = 4;
/// A choice: levels 5, 6 and 7 become the classes 2, 4 and 6 of an export in the foreground.
const CLASSES_A_LEVEL: u8 = 2;
/// The least urgent class of best effort.
const LAST_CLASS: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const TAR: ProcessName = *b"tar\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const RSYNC: ProcessName = *b"rsync\0\0\0\0\0\0\0\0\0\0\0";

    fn priority(class: IoClass, level: u8) -> IoPriority {
        IoPriority { class, level }
    }

    #[test]
    fn numbers_of_the_kernel_are_priorities_whatever_their_hints() {
        // ionice -c3, -c2 -n7, -c1 -n0, none, and a hint (duration limit 1) beside -c2 -n4.
        for (number, class, level) in [
            (0x6000, IoClass::Idle, 0),
            (0x4007, IoClass::BestEffort, 7),
            (0x2000, IoClass::RealTime, 0),
            (0, IoClass::None, 0),
            (0x400c, IoClass::BestEffort, 4),
            (0xe007, IoClass::None, 7),
        ] {
            assert_eq!(
                IoPriority::of(number),
                priority(class, level),
                "{number:#x}"
            );
        }
    }

    #[test]
    fn letters_of_the_kernel_tell_writes_of_metadata() {
        // Of Linux 6.18: XFS's log, its inodes, a read of inodes, data, a flush, and bytes behind the end.
        for (letters, expected) in [
            (b"FWFSM\0\0\0\0\0", Purpose::MetadataWrite),
            (b"WM\0\0\0\0\0\0\0\0", Purpose::MetadataWrite),
            (b"RM\0\0\0\0\0\0\0\0", Purpose::Other),
            (b"WS\0\0\0\0\0\0\0\0", Purpose::Other),
            (b"FF\0\0\0\0\0\0\0\0", Purpose::Other),
            (b"W\0M\0\0\0\0\0\0\0", Purpose::Other),
        ] {
            assert_eq!(Purpose::of(letters), expected, "{letters:?}");
        }
        assert_eq!(Purpose::of(b"WM"), Purpose::MetadataWrite, "no end");
    }

    #[test]
    fn without_a_rule_a_priority_lowers_a_class_and_never_raises_it() {
        let foreground = Class::BestEffort(0);
        for (export, class, level, expected) in [
            (foreground, IoClass::None, 0, foreground),
            (foreground, IoClass::RealTime, 0, foreground),
            (foreground, IoClass::BestEffort, 0, foreground),
            (foreground, IoClass::BestEffort, 4, foreground),
            (foreground, IoClass::BestEffort, 5, Class::BestEffort(2)),
            (foreground, IoClass::BestEffort, 7, Class::BestEffort(6)),
            (foreground, IoClass::Idle, 0, Class::Background),
            (
                Class::BestEffort(3),
                IoClass::RealTime,
                0,
                Class::BestEffort(3),
            ),
            (
                Class::BestEffort(3),
                IoClass::BestEffort,
                7,
                Class::BestEffort(6),
            ),
            (Class::Background, IoClass::RealTime, 0, Class::Background),
            (Class::Background, IoClass::BestEffort, 0, Class::Background),
        ] {
            let found = class_of(&[], export, priority(class, level), Purpose::Other, &TAR);
            let metadata = class_of(
                &[],
                export,
                priority(class, level),
                Purpose::MetadataWrite,
                &TAR,
            );
            assert_eq!(metadata, export, "{export:?} {class:?} {level}");
            assert_eq!(found, expected, "{export:?} {class:?} {level}");
            assert!(found >= export, "{export:?} {class:?} {level}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_all_its_parts_must_fit() {
        let rules = [
            Rule {
                priority: Some(IoClass::Idle),
                level: None,
                process: Some(RSYNC),
                class: Class::BestEffort(5),
            },
            Rule {
                priority: Some(IoClass::BestEffort),
                level: Some(7),
                process: None,
                class: Class::Background,
            },
            Rule {
                priority: None,
                level: None,
                process: Some(RSYNC),
                class: Class::BestEffort(3),
            },
        ];
        let foreground = Class::BestEffort(0);
        for (class, level, process, expected) in [
            (IoClass::Idle, 0, &RSYNC, Class::BestEffort(5)),
            (IoClass::Idle, 0, &TAR, Class::Background),
            (IoClass::BestEffort, 7, &RSYNC, Class::Background),
            (IoClass::BestEffort, 6, &RSYNC, Class::BestEffort(3)),
            (IoClass::None, 0, &RSYNC, Class::BestEffort(3)),
            (IoClass::None, 0, &TAR, foreground),
        ] {
            let priority = priority(class, level);
            let found = class_of(&rules, foreground, priority, Purpose::Other, process);
            assert_eq!(found, expected, "{class:?} {level} {process:?}");
            // A rule decides on metadata, too.
            if rules.iter().any(|rule| rule.fits(priority, process)) {
                let purpose = Purpose::MetadataWrite;
                let found = class_of(&rules, foreground, priority, purpose, process);
                assert_eq!(found, expected, "{class:?} {level} {process:?}");
            }
        }
    }
}
