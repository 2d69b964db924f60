//! A SCSI target in this process with the times of an emulated drive, in virtual time.
//!
//! ```text
//!   ScsiDrive --CDB, bytes--> machine: modes, faults, contents --Action--> VirtualDrive
//!             <--status, sense, bytes--                        <--end, status--
//! ```
//!
//! With one host thread each command moves the clock to its end; with several see `queue`. Its answers follow
//! SPC-4, SBC-3 and SAT-3, and share no code with what they test.

mod pages;
mod queue;
mod sense;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time;

use block::{
    Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Sectors, Status, Switch,
};
use drive::{Imperfections, Profile, VirtualDrive};
use queue::{After, Begun, CommandQueue, SharedState};
use sense::{
    NO_SUCH_BLOCK, NO_SUCH_COMMAND, NO_SUCH_FIELD, NO_SUCH_VALUE, OFF_THE_POINTER, PROTECTED,
    SenseCode, UNREADABLE, sense,
};
use server::disk::back_end::scsi::ScsiCommand;
use server::disk::back_end::scsi::target::{
    CHECK_CONDITION, CommandBytes, Completion, GOOD, ScsiTarget,
};

/// What is behind the SCSI commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A SCSI drive, whose mode page turns all switches.
    Scsi,
    /// An ATA drive behind the kernel's translation: its page has a fixed look-ahead, and it never says
    /// that it has FUA.
    Ata,
}

/// A target that may be asked from several places.
#[derive(Clone, Debug)]
pub struct ScsiMachine {
    shared: Arc<SharedState>,
}

/// Its state, which tests may look at and change.
#[derive(Debug)]
pub struct MachineState {
    /// The drive that has the times.
    pub drive: VirtualDrive,
    /// The time.
    pub now: Instant,
    /// The first bytes of blocks that were written.
    pub contents: BTreeMap<u64, u8>,
    /// The operation codes so far.
    pub codes: Vec<u8>,
    /// Commands until the path is gone; `None` if it stays.
    pub gone_after: Option<u64>,
    /// Commands until the drive is reset.
    pub reset_after: Option<u64>,
    /// Whether writes are refused.
    pub protection: Switch,
    /// Whether the drive has SEEK and VERIFY.
    pub extras: Switch,
    /// Whether the drive obeys FUA.
    pub fua: Switch,
    behind: Behind,
    attentions: VecDeque<(u8, u8)>,
    /// The caching page, and what it is after a reset.
    page: [u8; 20],
    saved: [u8; 20],
    ranges: Vec<(u64, u64)>,
    /// The commands at the drive, and their ends.
    pub queue: CommandQueue,
}

/// The time of a command without mechanics. A choice: the overhead of a fast drive.
const ELECTRONICS: Duration = Duration::from_micros(100);

/// Write cache and look-ahead are on: nothing is disabled.
const PAGE: [u8; 20] = [
    0x88, 18, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// An answer: bytes, or sense with the block of the event.
type Answer = Result<Vec<u8>, SenseError>;

/// Sense, and the block of the event.
type SenseError = (SenseCode, Option<u64>);

impl ScsiMachine {
    /// A drive that was just switched on, which it reports first.
    pub fn new(truth: Arc<Profile>, imperfections: Imperfections, behind: Behind) -> Self {
        let drive = VirtualDrive::imperfect(truth, imperfections, 11);
        let state = MachineState {
            drive,
            now: Instant::ZERO,
            contents: BTreeMap::new(),
            codes: Vec::new(),
            gone_after: None,
            reset_after: None,
            protection: Switch::Off,
            extras: Switch::On,
            fua: Switch::On,
            behind,
            attentions: VecDeque::from([(0x29, 0x01)]),
            page: PAGE,
            saved: PAGE,
            ranges: Vec::new(),
            queue: CommandQueue::default(),
        };
        ScsiMachine {
            shared: Arc::new(SharedState::new(state)),
        }
    }

    /// The state.
    pub fn state(&self) -> MutexGuard<'_, MachineState> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that sent commands has ended: the others do not wait for it.
    pub fn leave(&self) {
        self.shared.leave();
    }
}

impl ScsiTarget for ScsiMachine {
    fn carry_out(
        &self,
        command: &ScsiCommand,
        transfer: CommandBytes<'_>,
        _: time::Duration,
    ) -> io::Result<Completion> {
        let mut state = self.state();
        for event in [Event::Gone, Event::Reset] {
            state.count_down(event)?;
        }
        let cdb = command.bytes();
        state.codes.push(cdb[0]);
        let given = match &transfer {
            CommandBytes::To(bytes) => bytes,
            _ => &[][..],
        };
        let begun = match state.attention(cdb[0]) {
            Some((code, qualifier)) => Err(((6, code, qualifier), None)),
            None => state.answer(cdb, given),
        };
        let answer = match begun {
            Ok(Begun::Answered(bytes)) => {
                // The clock may have gone on.
                self.shared.wake();
                Ok(bytes)
            }
            Ok(Begun::UnderWay(id, after)) => self.shared.end(state, id, after),
            Err(error) => Err(error),
        };
        Ok(match (answer, transfer) {
            (Ok(bytes), CommandBytes::From(room)) => {
                let length = bytes.len().min(room.len());
                room[..length].copy_from_slice(&bytes[..length]);
                Completion {
                    status: GOOD,
                    missing: room.len() - length,
                    ..Completion::default()
                }
            }
            (Ok(_), _) => Completion::default(),
            (Err((code, block)), _) => Completion {
                status: CHECK_CONDITION,
                driver: 0x08,
                sense: sense(code, block),
                ..Completion::default()
            },
        })
    }
}

/// What happens after a number of commands.
#[derive(Clone, Copy)]
enum Event {
    Gone,
    Reset,
}

impl MachineState {
    /// Whether a switch is on: in the page, and in the drive's electronics, which must agree.
    pub fn is_on(&self, byte: usize, mask: u8) -> bool {
        self.page[byte] & mask != 0
    }

    /// The present caching page.
    pub fn page(&self) -> [u8; 20] {
        self.page
    }

    /// What the page is after a reset.
    pub fn saved(&self) -> [u8; 20] {
        self.saved
    }

    /// Declares ranges of blocks with actuators of their own.
    pub fn declare_ranges(&mut self, ranges: &[(u64, u64)]) {
        self.ranges = ranges.to_vec();
    }

    /// Resets the drive: its switches are the saved ones, and it reports the event.
    pub fn reset(&mut self) {
        let saved = self.saved;
        self.set_page(saved);
        self.attentions.push_back((0x29, 0x02));
    }

    fn count_down(&mut self, event: Event) -> io::Result<()> {
        let counter = match event {
            Event::Gone => &mut self.gone_after,
            Event::Reset => &mut self.reset_after,
        };
        match (counter, event) {
            (Some(0), Event::Gone) => Err(io::Error::from_raw_os_error(19)),
            (counter @ Some(0), Event::Reset) => {
                *counter = None;
                self.reset();
                Ok(())
            }
            (Some(left), _) => {
                *left -= 1;
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// An event that is reported instead of executing the command. INQUIRY is executed (SAM-5 5.14).
    fn attention(&mut self, code: u8) -> Option<(u8, u8)> {
        match code {
            0x12 => None,
            _ => self.attentions.pop_front(),
        }
    }

    fn answer(&mut self, cdb: &[u8], given: &[u8]) -> Result<Begun, SenseError> {
        let number = |from: usize, to: usize| {
            let bytes = cdb[from..to].iter();
            bytes.fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        match cdb[0] {
            0x00 => self.no_mechanics(Ok(Vec::new())),
            0x12 => {
                let page = self.inquiry(cdb[1], cdb[2]);
                self.no_mechanics(page)
            }
            0x9e if cdb[1] == 0x10 => {
                let capacity = self.capacity();
                self.no_mechanics(Ok(capacity))
            }
            0x5a => {
                let modes = self.mode_sense(cdb[2]);
                self.no_mechanics(modes)
            }
            0x55 => self.mode_select(cdb[1], given),
            0x85 => self.ata(cdb),
            0x88 => return self.read(number(2, 10), number(10, 14), cdb[1] & 0x08 != 0),
            0x8a => return self.write(number(2, 10), number(10, 14), cdb[1] & 0x08 != 0, given),
            0x8f if self.extras == Switch::On => {
                // The drive reads the medium; what it saves on the bus is less than its noise.
                let extent = self.extent(number(2, 10), number(10, 14))?;
                return self.read_extent(extent, true, After::Nothing);
            }
            0x2b if self.extras == Switch::On => {
                let to = Lba(number(2, 6));
                match to.0 < self.blocks() {
                    true => self.act(Action::Seek { to }),
                    false => Err((NO_SUCH_BLOCK, None)),
                }
            }
            0x35 => self.act(Action::Flush),
            _ => Err((NO_SUCH_COMMAND, None)),
        }
        .map(Begun::Answered)
    }

    fn blocks(&self) -> u64 {
        self.drive.truth().geometry.sectors().0
    }

    fn no_mechanics(&mut self, answer: Answer) -> Answer {
        self.now += ELECTRONICS;
        answer
    }

    /// The bits of the page that can be changed.
    fn changeable(&self) -> [u8; 20] {
        let mut bits = [0; 20];
        bits[..2].copy_from_slice(&PAGE[..2]);
        bits[2] = 0x04;
        if self.behind == Behind::Scsi {
            bits[2] |= 0x01;
            bits[12] = 0x20;
        }
        bits
    }

    fn mode_sense(&self, page: u8) -> Answer {
        if page & 0x3f != 0x08 {
            return Err((NO_SUCH_FIELD, None));
        }
        let values = match page >> 6 {
            0 => self.page,
            1 => self.changeable(),
            2 => PAGE,
            _ => self.saved,
        };
        let dpo_fua = u8::from(self.behind == Behind::Scsi && self.fua == Switch::On) << 4;
        let protected = u8::from(self.protection == Switch::On) << 7;
        let mut answer = vec![0, 26, 0, dpo_fua | protected, 0, 0, 0, 0];
        answer.extend_from_slice(&values);
        Ok(answer)
    }

    fn mode_select(&mut self, flags: u8, given: &[u8]) -> Answer {
        let Some(page) = given.get(8..28).filter(|_| flags & 0x10 != 0) else {
            return Err((NO_SUCH_FIELD, None));
        };
        // The bit "can be saved" is reserved here.
        if page[0] != 0x08 || page[1] != 18 {
            return Err((NO_SUCH_VALUE, None));
        }
        let mut wanted = self.page;
        let changeable = self.changeable();
        for (at, bits) in changeable.iter().enumerate().skip(2) {
            if (page[at] ^ self.page[at]) & !bits != 0 {
                return Err((NO_SUCH_VALUE, None));
            }
            wanted[at] = page[at];
        }
        if flags & 0x01 != 0 {
            self.saved = wanted;
        }
        self.set_page(wanted);
        self.no_mechanics(Ok(Vec::new()))
    }

    fn set_page(&mut self, page: [u8; 20]) {
        self.page = page;
        let write_cache = [Switch::Off, Switch::On][usize::from(page[2] >> 2 & 1)];
        let look_ahead = [Switch::On, Switch::Off][usize::from(page[12] >> 5 & 1)];
        for action in [
            Action::SetWriteCache(write_cache),
            Action::SetLookAhead(look_ahead),
        ] {
            let done = self.act(action);
            assert!(done.is_ok(), "the drive has its switches");
        }
    }

    /// ATA PASS-THROUGH (16): IDENTIFY DEVICE and SET FEATURES.
    fn ata(&mut self, cdb: &[u8]) -> Answer {
        if self.behind != Behind::Ata {
            return Err((NO_SUCH_COMMAND, None));
        }
        let mut page = self.page;
        match (cdb[14], cdb[1], cdb[4]) {
            // PIO in, one sector from the drive.
            (0xec, 0x08, 0) if cdb[2] & 0x0f == 0x0e && cdb[6] == 1 => {
                let mut words = vec![0; 512];
                words[164] = 0x60;
                words[170] |= u8::from(page[2] & 0x04 != 0) << 5;
                words[170] |= u8::from(page[12] & 0x20 == 0) << 6;
                return self.no_mechanics(Ok(words));
            }
            (0xef, 0x06, 0x02) => page[2] |= 0x04,
            (0xef, 0x06, 0x82) => page[2] &= !0x04,
            (0xef, 0x06, 0xaa) => page[12] &= !0x20,
            (0xef, 0x06, 0x55) => page[12] |= 0x20,
            // The kernel's translation of an aborted command.
            _ => return Err(((0x0b, 0, 0), None)),
        }
        self.set_page(page);
        Ok(Vec::new())
    }

    fn extent(&self, first: u64, blocks: u64) -> Result<Extent, SenseError> {
        let extent = Extent::new(Lba(first), Sectors(blocks));
        let extent = extent.map_err(|_| (NO_SUCH_BLOCK, None))?;
        match extent.end().0 <= self.blocks() {
            true => Ok(extent),
            false => Err((NO_SUCH_BLOCK, None)),
        }
    }

    fn read(&mut self, first: u64, blocks: u64, fua: bool) -> Result<Begun, SenseError> {
        let extent = self.extent(first, blocks)?;
        let from_medium = self.page[2] & 0x01 != 0 || (fua && self.fua == Switch::On);
        self.read_extent(extent, from_medium, After::Send { first, blocks })
    }

    fn read_extent(
        &mut self,
        extent: Extent,
        from_medium: bool,
        after: After,
    ) -> Result<Begun, SenseError> {
        let durability = match from_medium {
            true => Durability::Durable,
            false => Durability::Volatile,
        };
        let id = self.submit(Action::Read { extent, durability })?;
        Ok(Begun::UnderWay(id, after))
    }

    fn write(
        &mut self,
        first: u64,
        blocks: u64,
        fua: bool,
        given: &[u8],
    ) -> Result<Begun, SenseError> {
        let extent = self.extent(first, blocks)?;
        if self.protection == Switch::On {
            return Err((PROTECTED, None));
        }
        let durability = match fua {
            true => Durability::Durable,
            false => Durability::Volatile,
        };
        let id = self.submit(Action::Write { extent, durability })?;
        let block = self.drive.truth().block_bytes as usize;
        let firsts = given.chunks(block).map(|bytes| bytes[0]).collect();
        Ok(Begun::UnderWay(id, After::Store { first, firsts }))
    }

    /// What follows the end of a command with this status.
    fn finished(&mut self, status: Status, after: After) -> Answer {
        match status {
            Status::MediumError { at } => return Err((UNREADABLE, Some(at.0))),
            Status::WritePointer { .. } => return Err((OFF_THE_POINTER, None)),
            _ => {}
        }
        match after {
            After::Nothing => Ok(Vec::new()),
            After::Send { first, blocks } => {
                let block = self.drive.truth().block_bytes as usize;
                let written = |at: u64| self.contents.get(&at).copied().unwrap_or(0);
                let each = (first..first + blocks).map(written);
                Ok(each
                    .flat_map(|byte| std::iter::repeat_n(byte, block))
                    .collect())
            }
            After::Store { first, firsts } => {
                self.contents.extend((first..).zip(firsts));
                Ok(Vec::new())
            }
        }
    }

    fn submit(&mut self, action: Action) -> Result<CommandId, SenseError> {
        let id = self.queue.next_id();
        let command = Command::new(id, action);
        let given = self.drive.submit(self.now, command);
        given.map_err(|_| (NO_SUCH_BLOCK, None))?;
        self.queue.given();
        Ok(id)
    }

    /// Executes an action in the drive's time, whatever else is at the drive.
    fn act(&mut self, action: Action) -> Answer {
        let id = self.submit(action)?;
        loop {
            if let Some(status) = self.status_of(id) {
                return self.finished(status, After::Nothing);
            }
            self.advance();
        }
    }
}
