//! Numbers as bytes and back.

use block::{
    Account, Action, BufferHit, Class, Command, CommandId, Direction, Durability, Duration, Extent,
    Instant, Lba, Sectors, Status, Switch, Urgency,
};

/// Bytes that grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

/// What is wrong with some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// How many bytes before it were as they should be.
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// Bytes that are taken one after the other.
pub(super) struct In<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Taken<T> = Result<T, Wrong>;

impl Out {
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Zero for nothing, otherwise one and what `put` appends.
    pub(super) fn option<T>(&mut self, option: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.number(u64::from(option.is_some()));
        if let Some(value) = option {
            put(self, value);
        }
    }

    pub(super) fn instant(&mut self, instant: Instant) {
        self.number(instant.as_nanos());
    }

    pub(super) fn duration(&mut self, duration: Duration) {
        self.number(duration.as_nanos());
    }

    pub(super) fn extent(&mut self, extent: Extent) {
        self.number(extent.start().0);
        self.number(extent.length().0);
    }

    pub(super) fn direction(&mut self, direction: Direction) {
        self.number(u64::from(direction == Direction::Write));
    }

    pub(super) fn durability(&mut self, durability: Durability) {
        self.number(u64::from(durability == Durability::Durable));
    }

    pub(super) fn class(&mut self, class: Class) {
        match class {
            Class::RealTime { deadline } => {
                self.number(0);
                self.instant(deadline);
            }
            Class::Background => self.number(1),
            Class::BestEffort(priority) => self.number(2 + u64::from(priority)),
        }
    }

    pub(super) fn command(&mut self, command: &Command) {
        self.number(command.id.0);
        match command.action {
            Action::Read { extent, durability } => {
                self.number(0);
                self.extent(extent);
                self.durability(durability);
            }
            Action::Write { extent, durability } => {
                self.number(1);
                self.extent(extent);
                self.durability(durability);
            }
            Action::Seek { to } => {
                self.number(2);
                self.number(to.0);
            }
            Action::Flush => self.number(3),
            Action::SetLookAhead(switch) => {
                self.number(4);
                self.number(u64::from(switch == Switch::On));
            }
            Action::SetWriteCache(switch) => {
                self.number(5);
                self.number(u64::from(switch == Switch::On));
            }
        }
        self.number(u64::from(command.urgency == Urgency::High));
        self.option(command.duration_limit, Self::duration);
    }

    pub(super) fn status(&mut self, status: Status) {
        match status {
            Status::Good => self.number(0),
            Status::MediumError { at } => {
                self.number(1);
                self.number(at.0);
            }
            Status::TimedOut => self.number(2),
            Status::WritePointer { expected } => {
                self.number(3);
                self.number(expected.0);
            }
            Status::Aborted => self.number(4),
        }
    }

    pub(super) fn account(&mut self, account: Account) {
        let Account {
            queue,
            overhead,
            seek,
            rotation,
            transfer,
            bus,
            hit,
        } = account;
        for phase in [queue, overhead, seek, rotation, transfer, bus] {
            self.duration(phase);
        }
        self.number(match hit {
            BufferHit::Miss => 0,
            BufferHit::Partial => 1,
            BufferHit::Full => 2,
        });
    }
}

impl<'a> In<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        In { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn wrong<T>(&self, at: usize, expected: &'static str) -> Taken<T> {
        Err(Wrong { at, expected })
    }

    pub(super) fn number(&mut self) -> Taken<u64> {
        let from = self.at;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return self.wrong(self.at, "the rest of a number");
            };
            self.at += 1;
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                // One number has one form.
                let is_shortest = byte != 0 || shift == 0;
                return match is_shortest {
                    true => Ok(number),
                    false => self.wrong(from, "a number in its shortest form"),
                };
            }
        }
        self.wrong(from, "a number below 2^64")
    }

    /// A number up to `most`.
    pub(super) fn up_to(&mut self, most: u64, expected: &'static str) -> Taken<u64> {
        let from = self.at;
        match self.number()? {
            number if number <= most => Ok(number),
            _ => self.wrong(from, expected),
        }
    }

    pub(super) fn flag(&mut self) -> Taken<bool> {
        Ok(self.up_to(1, "0 or 1")? == 1)
    }

    pub(super) fn bytes(&mut self) -> Taken<&'a [u8]> {
        let from = self.at;
        let left = self.bytes.len() as u64;
        let length = self.up_to(left, "a length within the frame")? as usize;
        match self.bytes.get(self.at..self.at + length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.wrong(from, "a length within the frame"),
        }
    }

    pub(super) fn text(&mut self) -> Taken<&'a str> {
        let from = self.at;
        let text = std::str::from_utf8(self.bytes()?);
        text.or_else(|_| self.wrong(from, "text in UTF-8"))
    }

    pub(super) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Taken<T>,
    ) -> Taken<Option<T>> {
        match self.flag()? {
            true => take(self).map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn instant(&mut self) -> Taken<Instant> {
        self.number().map(Instant::from_nanos)
    }

    pub(super) fn duration(&mut self) -> Taken<Duration> {
        self.number().map(Duration::from_nanos)
    }

    pub(super) fn extent(&mut self) -> Taken<Extent> {
        let from = self.at;
        let (start, length) = (self.number()?, self.number()?);
        let extent = Extent::new(Lba(start), Sectors(length));
        extent.or_else(|_| self.wrong(from, "an extent: not empty, and below block 2^64"))
    }

    pub(super) fn direction(&mut self) -> Taken<Direction> {
        Ok(match self.flag()? {
            false => Direction::Read,
            true => Direction::Write,
        })
    }

    pub(super) fn durability(&mut self) -> Taken<Durability> {
        Ok(match self.flag()? {
            false => Durability::Volatile,
            true => Durability::Durable,
        })
    }

    pub(super) fn class(&mut self) -> Taken<Class> {
        let number = self.up_to(2 + 255, "a class: 0 to 257")?;
        Ok(match number {
            0 => Class::RealTime {
                deadline: self.instant()?,
            },
            1 => Class::Background,
            number => Class::BestEffort((number - 2) as u8),
        })
    }

    pub(super) fn command(&mut self) -> Taken<Command> {
        let id = CommandId(self.number()?);
        let action = match self.up_to(5, "an action: 0 to 5")? {
            0 => Action::Read {
                extent: self.extent()?,
                durability: self.durability()?,
            },
            1 => Action::Write {
                extent: self.extent()?,
                durability: self.durability()?,
            },
            2 => Action::Seek {
                to: Lba(self.number()?),
            },
            3 => Action::Flush,
            4 => Action::SetLookAhead(self.switch()?),
            _ => Action::SetWriteCache(self.switch()?),
        };
        let urgency = match self.flag()? {
            false => Urgency::Normal,
            true => Urgency::High,
        };
        Ok(Command {
            id,
            action,
            urgency,
            duration_limit: self.option(Self::duration)?,
        })
    }

    fn switch(&mut self) -> Taken<Switch> {
        Ok(match self.flag()? {
            false => Switch::Off,
            true => Switch::On,
        })
    }

    pub(super) fn status(&mut self) -> Taken<Status> {
        Ok(match self.up_to(4, "a status: 0 to 4")? {
            0 => Status::Good,
            1 => Status::MediumError {
                at: Lba(self.number()?),
            },
            2 => Status::TimedOut,
            3 => Status::WritePointer {
                expected: Lba(self.number()?),
            },
            _ => Status::Aborted,
        })
    }

    pub(super) fn account(&mut self) -> Taken<Account> {
        Ok(Account {
            queue: self.duration()?,
            overhead: self.duration()?,
            seek: self.duration()?,
            rotation: self.duration()?,
            transfer: self.duration()?,
            bus: self.duration()?,
            hit: match self.up_to(2, "a buffer's answer: 0 to 2")? {
                0 => BufferHit::Miss,
                1 => BufferHit::Partial,
                _ => BufferHit::Full,
            },
        })
    }
}
