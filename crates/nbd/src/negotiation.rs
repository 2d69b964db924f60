//! The server's side of the negotiation.
//!
//! ```text
//!   bytes --> Flags --> Option header --> Payload --> answer --> Option header ...
//!                            |                          |-> StartTls, Agreed, Closed
//!                            '--> Skip (too long) ------'
//! ```
//!
//! What a client sends is held until an option is complete, and no option that is held is longer
//! than [`OPTION`]. No more is taken while more than [`OUTPUT`] waits to be sent.

mod answers;
mod queries;

use std::sync::Arc;

use super::offer::Offer;
use super::wire::{self, answer, option};
use super::{Context, Style};
use answers::Answers;

/// What a client agreed to: transmission begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Which of the offers.
    pub export: usize,
    /// How requests and replies look.
    pub style: Style,
    /// What the client may ask about blocks, by the numbers that replies have.
    pub contexts: Vec<(u32, Context)>,
    /// Whether the client asked for the block sizes, and so keeps to them.
    pub sizes: Sizes,
}

/// Whether a client knows the block sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// It asked for them: it has to keep to them.
    Asked,
    /// It did not: it may address single bytes (the protocol's section "Size constraints").
    NotAsked,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSecurity {
    /// Never ("NOTLS").
    Plain,
    /// If the client wants it ("SELECTIVETLS").
    Optional,
    /// The server answers no query before it ("FORCEDTLS").
    Required,
}

/// What the caller does next, after it has sent the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPhase {
    /// Receive more.
    More,
    /// Shake hands for TLS, with the bytes that [`ServerNegotiation::receive`] did not take; then call
    /// [`ServerNegotiation::secured`] and go on inside of it. If TLS fails, close.
    StartTls,
    /// Serve requests; the bytes that were not taken are the first of them.
    Agreed(Agreed),
    /// Close the connection.
    Closed(ServerError),
}

/// The reason for which a negotiation ended without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The client sent `NBD_OPT_ABORT`.
    #[error("the client ended the negotiation")]
    Aborted,
    /// Unknown client flags.
    #[error("client flags {0:#x}, expected at most 0x3")]
    Flags(u32),
    /// An option without its magic number.
    #[error("an option begins with {0:#018x}, expected IHAVEOPT")]
    Magic(u64),
    /// An option above the length that the server skips.
    #[error("an option of {0} bytes, expected at most 32 MiB")]
    TooLong(u32),
    /// An export's name in `NBD_OPT_EXPORT_NAME` that is longer than names are.
    #[error("an export's name of {0} bytes, expected at most 4096")]
    NameTooLong(u32),
    /// Too many options.
    #[error("more than 1024 options before transmission")]
    TooMany,
    /// `NBD_OPT_EXPORT_NAME` with a name that is not offered: it has no reply for that.
    #[error("no export of the name that the client asked for")]
    Unknown,
    /// `NBD_OPT_EXPORT_NAME` without TLS where that is required: it has no reply for that.
    #[error("the client did not start TLS, which is required here")]
    TlsRequired,
    /// `NBD_OPT_EXPORT_NAME` while the service goes down: it has no reply for that.
    #[error("the service is going down")]
    ShuttingDown,
    /// `NBD_OPT_EXPORT_NAME` after extended headers, which forbid it.
    #[error("NBD_OPT_EXPORT_NAME after extended headers, expected NBD_OPT_GO")]
    ExtendedName,
}

/// The server's side of one connection, until transmission.
#[derive(Debug)]
pub struct ServerNegotiation {
    exports: Arc<[Offer]>,
    security: ServerSecurity,
    service: ClientAdmission,
    tls: Tls,
    client: Client,
    style: Style,
    contexts: Option<Selected>,
    options: u32,
    phase: Phase,
    held: Vec<u8>,
    out: Vec<u8>,
}

/// Whether clients may still begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientAdmission {
    Open,
    GoingDown,
}

/// Whether TLS is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tls {
    Off,
    On,
}

/// The flags of the client.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    fixed: bool,
    no_zeroes: bool,
}

/// The contexts of the last `NBD_OPT_SET_META_CONTEXT`.
#[derive(Clone, Debug)]
struct Selected {
    export: usize,
    contexts: Vec<(u32, Context)>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The client's flags are awaited.
    Flags,
    /// The header of an option is awaited.
    Option,
    /// The payload of an option is awaited.
    Payload { option: u32, length: usize },
    /// The rest of an option that is too long is passed over.
    Skip { option: u32, left: usize },
    /// Negotiation is over, or interrupted.
    Ended(ServerPhase),
}

impl ServerNegotiation {
    /// A server that offers `exports`. Its greeting is in the output at once.
    #[must_use]
    pub fn new(exports: Arc<[Offer]>, security: ServerSecurity) -> Self {
        let mut out = Vec::new();
        out.extend_from_slice(&wire::INIT_PASSWD.to_be_bytes());
        out.extend_from_slice(&wire::IHAVEOPT.to_be_bytes());
        out.extend_from_slice(&(wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
        Self {
            exports,
            security,
            service: ClientAdmission::Open,
            tls: Tls::Off,
            client: Client::default(),
            style: Style::Simple,
            contexts: None,
            options: 0,
            phase: Phase::Flags,
            held: Vec::new(),
            out,
        }
    }

    /// Takes bytes of the client; answers how many it took. It takes them all, except after the
    /// last one that belongs to the negotiation, and while more than [`OUTPUT`] bytes wait to be
    /// sent: then the rest is to be given again when they are.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            let needed = match self.phase {
                Phase::Flags => 4,
                Phase::Option => wire::OPTION_HEADER,
                Phase::Payload { length, .. } => length,
                Phase::Skip { left, .. } => left,
                Phase::Ended(_) => return taken,
            };
            if self.out.len() > OUTPUT {
                return taken;
            }
            let rest = &bytes[taken..];
            if let Phase::Skip { option, left } = self.phase {
                let passed = left.min(rest.len());
                taken += passed;
                self.phase = Phase::Skip {
                    option,
                    left: left - passed,
                };
                if passed < left {
                    return taken;
                }
                self.answers(option).too_big();
                self.phase = Phase::Option;
                continue;
            }
            let piece = (needed - self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..piece]);
            taken += piece;
            if self.held.len() < needed {
                return taken;
            }
            let held = std::mem::take(&mut self.held);
            self.complete(&held);
            self.held = held;
            self.held.clear();
        }
    }

    /// What is to be sent. The caller takes it out.
    pub const fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// What comes next.
    #[must_use]
    pub fn step(&self) -> ServerPhase {
        match &self.phase {
            Phase::Ended(step) => step.clone(),
            _ => ServerPhase::More,
        }
    }

    /// From now on only these are offered: who the client is may be known after [`ServerPhase::StartTls`] only.
    pub fn offer_only(&mut self, exports: Arc<[Offer]>) {
        self.exports = exports;
    }

    /// TLS is on. What was negotiated before it is forgotten, as the protocol demands. Without
    /// [`ServerPhase::StartTls`] before it, it has no effect.
    pub fn secured(&mut self) {
        if matches!(self.phase, Phase::Ended(ServerPhase::StartTls)) {
            self.tls = Tls::On;
            self.style = Style::Simple;
            self.contexts = None;
            self.phase = Phase::Option;
        }
    }

    /// The service goes down: from now on every option is answered by that, until the client goes.
    pub const fn shut_down(&mut self) {
        self.service = ClientAdmission::GoingDown;
    }

    /// What was awaited is there.
    fn complete(&mut self, held: &[u8]) {
        match self.phase {
            Phase::Flags => self.flags(held),
            Phase::Option => self.header(held),
            Phase::Payload { option, .. } => {
                self.phase = Phase::Option;
                self.option(option, held);
            }
            Phase::Skip { .. } | Phase::Ended(_) => {}
        }
    }

    fn flags(&mut self, held: &[u8]) {
        let flags = wire::Fields(held).u32().unwrap_or(u32::MAX);
        let known = u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        if flags & !known != 0 {
            self.close(ServerError::Flags(flags));
            return;
        }
        self.client = Client {
            fixed: flags & u32::from(wire::FIXED_NEWSTYLE) != 0,
            no_zeroes: flags & u32::from(wire::NO_ZEROES) != 0,
        };
        self.phase = Phase::Option;
    }

    fn header(&mut self, held: &[u8]) {
        let mut bytes = wire::Fields(held);
        let magic = bytes.u64().unwrap_or_default();
        let option = bytes.u32().unwrap_or_default();
        let length = bytes.u32().unwrap_or_default();
        self.options += 1;
        if magic != wire::IHAVEOPT {
            self.close(ServerError::Magic(magic));
        } else if self.options > OPTIONS {
            self.close(ServerError::TooMany);
        } else if option == option::EXPORT_NAME && length as usize > wire::STRING {
            self.close(ServerError::NameTooLong(length));
        } else if length > SKIPPED {
            self.close(ServerError::TooLong(length));
        } else if length as usize > OPTION {
            let left = length as usize;
            self.phase = Phase::Skip { option, left };
        } else {
            let length = length as usize;
            self.phase = Phase::Payload { option, length };
        }
    }

    fn option(&mut self, option: u32, payload: &[u8]) {
        if option == option::ABORT {
            self.answers(option).ack();
            self.close(ServerError::Aborted);
        } else if self.service == ClientAdmission::GoingDown && option == option::EXPORT_NAME {
            self.close(ServerError::ShuttingDown);
        } else if self.service == ClientAdmission::GoingDown {
            let reason = "the service is going down";
            self.answers(option).error(answer::SHUTDOWN, reason);
        } else if option == option::EXPORT_NAME {
            self.export_name(payload);
        } else if !self.client.fixed {
            let reason = "only clients of fixed newstyle may send other options";
            self.answers(option).error(answer::INVALID, reason);
        } else if option == option::STARTTLS {
            self.start_tls(payload);
        } else if self.security == ServerSecurity::Required && self.tls == Tls::Off {
            let reason = "start TLS first";
            self.answers(option).error(answer::TLS_REQD, reason);
        } else {
            match option {
                option::LIST => self.list(payload),
                option::INFO | option::GO => self.export(option, payload),
                option::STRUCTURED_REPLY | option::EXTENDED_HEADERS => {
                    self.choose_style(option, payload);
                }
                option::LIST_META_CONTEXT => self.list_contexts(payload),
                option::SET_META_CONTEXT => self.set_contexts(payload),
                _ => self
                    .answers(option)
                    .error(answer::UNSUP, "this server does not know the option"),
            }
        }
    }

    fn start_tls(&mut self, payload: &[u8]) {
        let (security, tls) = (self.security, self.tls);
        let mut answers = self.answers(option::STARTTLS);
        if !payload.is_empty() {
            answers.error(answer::INVALID, "this option has no payload");
        } else if security == ServerSecurity::Plain {
            answers.error(answer::POLICY, "this server is configured without TLS");
        } else if tls == Tls::On {
            answers.error(answer::INVALID, "TLS is on already");
        } else {
            answers.ack();
            self.phase = Phase::Ended(ServerPhase::StartTls);
        }
    }

    fn choose_style(&mut self, option: u32, payload: &[u8]) {
        let wanted = match option {
            option::EXTENDED_HEADERS => Style::Extended,
            _ => Style::Structured,
        };
        let style = self.style;
        let mut answers = self.answers(option);
        if !payload.is_empty() {
            answers.error(answer::INVALID, "this option has no payload");
        } else if style == wanted {
            answers.error(answer::INVALID, "this is agreed already");
        } else if style > wanted {
            let reason = "extended headers are agreed already";
            answers.error(answer::EXT_HEADER_REQD, reason);
        } else {
            answers.ack();
            self.style = wanted;
        }
    }

    /// The export of this name; without a name, the one without a name, or the first.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let same = |offer: &Offer| offer.name.as_str().as_bytes() == name;
        let default = || (name.is_empty() && !self.exports.is_empty()).then_some(0);
        self.exports.iter().position(same).or_else(default)
    }

    fn agree(&mut self, export: usize, sizes: Sizes) {
        let selected = self.contexts.take();
        let contexts = selected
            .filter(|selected| selected.export == export)
            .map(|selected| selected.contexts)
            .unwrap_or_default();
        self.phase = Phase::Ended(ServerPhase::Agreed(Agreed {
            export,
            style: self.style,
            contexts,
            sizes,
        }));
    }

    const fn answers(&mut self, option: u32) -> Answers<'_> {
        Answers::to(option, &mut self.out)
    }

    fn close(&mut self, reason: ServerError) {
        self.phase = Phase::Ended(ServerPhase::Closed(reason));
    }
}

/// The longest option that is looked at, in bytes: two names or queries of the greatest length,
/// and what is around them, twice over. A choice; nbdkit has the same.
pub const OPTION: usize = 4 * wire::STRING;
/// The longest option that is passed over, in bytes. Those above end the session. A choice, as
/// QEMU's.
pub const SKIPPED: u32 = 32 << 20;
/// How many options a client may send. A choice: a client needs a dozen, and one for each export
/// that it lists.
pub const OPTIONS: u32 = 1024;
/// How many bytes of answers may wait while more options are taken. A choice: many times what one
/// client needs.
pub const OUTPUT: usize = 64 << 10;
