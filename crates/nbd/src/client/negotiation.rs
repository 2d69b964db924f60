//! The client's side of the negotiation.
//!
//! ```text
//!   greeting -> [STARTTLS] -> EXTENDED_HEADERS -> STRUCTURED_REPLY -> SET_META_CONTEXT -> GO
//!                  |              |  (refused:)------^     (refused:)                      |
//!                  '-> TLS        '-- (agreed) ------------------------^                   |
//!   a server without fixed newstyle, or without GO: EXPORT_NAME                  Session <-'
//! ```

use super::super::negotiation::{Agreed, Sizes};
use super::super::offer::{BlockSizes, Features, Offer, Text, Unfit};
use super::super::wire::{self, Fields, about, answer, option};
use super::super::{Context, Style};

/// What a client wants of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The export; without a name, the default one.
    pub export: Text,
    /// The best style that is asked for.
    pub style: Style,
    /// What it wants to ask about blocks.
    pub contexts: Vec<Context>,
    /// Whether the connection is to be encrypted.
    pub security: ClientSecurity,
}

/// Whether a connection is to be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSecurity {
    /// No: what is told of a server that requires it.
    Plain,
    /// If the server has TLS.
    IfOffered,
    /// Or there is no session.
    Required,
}

/// What client and server agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// What the server has.
    pub offer: Offer,
    /// How it is used; the export's number means nothing here.
    pub agreed: Agreed,
}

/// What the caller does next, after it has sent the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientPhase {
    /// Receive more.
    More,
    /// Shake hands for TLS, then call [`ClientNegotiation::secured`].
    StartTls,
    /// Send requests; the bytes that were not taken are the first replies.
    Agreed(Session),
    /// Send the output, which says that we go if the server can be told, and close.
    Closed(ClientError),
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It does not begin as NBD servers do.
    #[error("the server begins with {0:#018x}, expected NBDMAGIC")]
    NoServer(u64),
    /// It speaks what no server should any more.
    #[error("the server speaks the protocol from before version 2.9.17, expected newstyle")]
    OldStyle,
    /// It offers neither.
    #[error("a server that continues with {0:#018x}, expected IHAVEOPT")]
    NoOptions(u64),
    /// It has no TLS, which we require.
    #[error("the server does not start TLS, which is required here: {0}")]
    NoTls(String),
    /// It refused the export.
    #[error("the server refused ({kind:#x}): {message}")]
    Refused {
        /// The reply's type, as the protocol has it.
        kind: u32,
        /// What the server says.
        message: String,
    },
    /// What should be a reply is none, or one to something else.
    #[error("a reply that does not belong to the option {0}")]
    Reply(u32),
    /// A reply is longer than any.
    #[error("a reply of {0} bytes to an option, expected at most 8192")]
    TooLong(u32),
    /// It answers one option for ever.
    #[error("more than 64 replies to one option")]
    TooMany,
    /// It agrees without telling what is agreed to.
    #[error("the server agreed without telling size and flags")]
    NoExport,
    /// Its block sizes are impossible.
    #[error("the server tells of {0}")]
    BlockSizes(#[from] Unfit),
}

/// The client's side of one connection, until transmission.
#[derive(Debug)]
pub struct ClientNegotiation {
    wish: ClientOptions,
    phase: Phase,
    zeroes: usize,
    style: Style,
    contexts: Vec<(u32, Context)>,
    told: Told,
    replies: u32,
    held: Vec<u8>,
    out: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Phase {
    Greeting,
    /// The header of a reply to an option.
    Header(u32),
    /// The payload of a reply to an option.
    Payload {
        option: u32,
        kind: u32,
        length: usize,
    },
    /// Size, flags and zeroes.
    OldReply,
    Ended(ClientPhase),
}

/// What the server told of the export.
#[derive(Clone, Debug, Default)]
struct Told {
    export: Option<(u64, u16)>,
    description: Text,
    block: Option<BlockSizes>,
}

impl ClientNegotiation {
    /// A client that waits for the server's greeting.
    #[must_use]
    pub fn new(wish: ClientOptions) -> Self {
        Self {
            wish,
            phase: Phase::Greeting,
            zeroes: ZEROES,
            style: Style::Simple,
            contexts: Vec::new(),
            told: Told::default(),
            replies: 0,
            held: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes bytes of the server; answers how many it took: all, except after the last one that
    /// belongs to the negotiation.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            let needed = match self.phase {
                Phase::Greeting => 18,
                Phase::Header(_) => wire::ANSWER_HEADER,
                Phase::Payload { length, .. } => length,
                Phase::OldReply => 10 + self.zeroes,
                Phase::Ended(_) => return taken,
            };
            let rest = &bytes[taken..];
            let piece = (needed - self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..piece]);
            taken += piece;
            if self.held.len() < needed {
                return taken;
            }
            let mut held = std::mem::take(&mut self.held);
            if let Err(reason) = self.complete(&held) {
                self.phase = Phase::Ended(ClientPhase::Closed(reason));
            }
            held.clear();
            self.held = held;
        }
    }

    /// What is to be sent. The caller takes it out.
    pub const fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// What comes next.
    #[must_use]
    pub fn step(&self) -> ClientPhase {
        match &self.phase {
            Phase::Ended(step) => step.clone(),
            _ => ClientPhase::More,
        }
    }

    /// TLS is on. Without [`ClientPhase::StartTls`] before it, it has no effect.
    pub fn secured(&mut self) {
        if matches!(self.phase, Phase::Ended(ClientPhase::StartTls)) {
            self.ask_style(Style::Extended);
        }
    }

    fn complete(&mut self, held: &[u8]) -> Result<(), ClientError> {
        match self.phase {
            Phase::Greeting => self.greeting(held),
            Phase::Header(option) => self.header(option, held),
            Phase::Payload { option, kind, .. } => self.reply(option, kind, held),
            Phase::OldReply => {
                let mut bytes = Fields(held);
                self.told.export = bytes.u64().zip(bytes.u16());
                self.agree()
            }
            Phase::Ended(_) => Ok(()),
        }
    }

    fn greeting(&mut self, held: &[u8]) -> Result<(), ClientError> {
        let mut bytes = Fields(held);
        let (magic, second) = bytes.u64().zip(bytes.u64()).unwrap_or_default();
        let flags = bytes.u16().unwrap_or_default();
        if magic != wire::INIT_PASSWD {
            return Err(ClientError::NoServer(magic));
        }
        if second == wire::OLDSTYLE {
            return Err(ClientError::OldStyle);
        }
        if second != wire::IHAVEOPT {
            return Err(ClientError::NoOptions(second));
        }
        let ours = flags & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        self.out.extend_from_slice(&u32::from(ours).to_be_bytes());
        if ours & wire::NO_ZEROES != 0 {
            self.zeroes = 0;
        }
        let fixed = ours & wire::FIXED_NEWSTYLE != 0;
        match self.wish.security {
            ClientSecurity::Required if !fixed => {
                return Err(ClientError::NoTls("it has no options".to_owned()));
            }
            _ if !fixed => self.ask_old(),
            ClientSecurity::Plain => self.ask_style(Style::Extended),
            ClientSecurity::IfOffered | ClientSecurity::Required => self.ask(option::STARTTLS, &[]),
        }
        Ok(())
    }

    fn header(&mut self, option: u32, held: &[u8]) -> Result<(), ClientError> {
        let mut bytes = Fields(held);
        let magic = bytes.u64();
        let of = bytes.u32();
        let (kind, length) = bytes.u32().zip(bytes.u32()).unwrap_or_default();
        if magic != Some(wire::OPTION_REPLY) || of != Some(option) {
            return Err(ClientError::Reply(option));
        }
        if length as usize > ANSWER {
            return Err(ClientError::TooLong(length));
        }
        self.replies += 1;
        if self.replies > REPLIES {
            return Err(ClientError::TooMany);
        }
        self.phase = Phase::Payload {
            option,
            kind,
            length: length as usize,
        };
        Ok(())
    }

    fn reply(&mut self, option: u32, kind: u32, payload: &[u8]) -> Result<(), ClientError> {
        if kind & answer::ERROR != 0 {
            return self.refused(option, kind, payload);
        }
        match (option, kind) {
            (option::GO, answer::INFO) => {
                self.phase = Phase::Header(option);
                self.about(payload)
            }
            (option::SET_META_CONTEXT, answer::META_CONTEXT) => {
                self.phase = Phase::Header(option);
                self.context(payload)
            }
            (_, answer::ACK) if payload.is_empty() => self.acknowledged(option),
            _ => Err(ClientError::Reply(option)),
        }
    }

    fn acknowledged(&mut self, option: u32) -> Result<(), ClientError> {
        match option {
            option::STARTTLS => self.phase = Phase::Ended(ClientPhase::StartTls),
            option::EXTENDED_HEADERS => {
                self.style = Style::Extended;
                self.ask_contexts();
            }
            option::STRUCTURED_REPLY => {
                self.style = Style::Structured;
                self.ask_contexts();
            }
            option::SET_META_CONTEXT => self.ask_go(),
            _ => return self.agree(),
        }
        Ok(())
    }

    fn refused(&mut self, option: u32, kind: u32, payload: &[u8]) -> Result<(), ClientError> {
        let message = String::from_utf8_lossy(payload).into_owned();
        if kind == answer::TLS_REQD || kind == answer::SHUTDOWN {
            return self.leave(ClientError::Refused { kind, message });
        }
        match option {
            option::STARTTLS if self.wish.security == ClientSecurity::Required => {
                return self.leave(ClientError::NoTls(message));
            }
            option::STARTTLS => self.ask_style(Style::Extended),
            option::EXTENDED_HEADERS => self.ask_style(Style::Structured),
            option::STRUCTURED_REPLY => self.ask_go(),
            option::SET_META_CONTEXT => {
                self.contexts.clear();
                self.ask_go();
            }
            _ if kind == answer::UNSUP && !self.style.extended() => self.ask_old(),
            _ => return self.leave(ClientError::Refused { kind, message }),
        }
        Ok(())
    }

    /// There is no session; the server is told so.
    fn leave(&mut self, reason: ClientError) -> Result<(), ClientError> {
        self.ask(option::ABORT, &[]);
        Err(reason)
    }

    fn about(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut bytes = Fields(payload);
        match bytes.u16() {
            Some(about::EXPORT) => self.told.export = bytes.u64().zip(bytes.u16()),
            Some(about::DESCRIPTION) => {
                let text = String::from_utf8_lossy(bytes.0).into_owned();
                self.told.description = Text::new(text).unwrap_or_default();
            }
            Some(about::BLOCK_SIZE) => {
                let sizes = (bytes.u32(), bytes.u32(), bytes.u32());
                let (Some(min), Some(preferred), Some(max)) = sizes else {
                    return Err(ClientError::Reply(option::GO));
                };
                self.told.block = Some(BlockSizes::told(min, preferred, max)?);
            }
            Some(_) => {}
            None => return Err(ClientError::Reply(option::GO)),
        }
        Ok(())
    }

    fn context(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut bytes = Fields(payload);
        let id = bytes.u32();
        let context = self
            .wish
            .contexts
            .iter()
            .find(|context| context.name().as_bytes() == bytes.0);
        match (id, context) {
            // One that was not asked for, twice the same, or a number that another one has.
            (Some(id), Some(context))
                if self
                    .contexts
                    .iter()
                    .all(|known| known.0 != id && known.1 != *context) =>
            {
                self.contexts.push((id, context.clone()));
                Ok(())
            }
            _ => Err(ClientError::Reply(option::SET_META_CONTEXT)),
        }
    }

    fn agree(&mut self) -> Result<(), ClientError> {
        let Some((size, flags)) = self.told.export else {
            return Err(ClientError::NoExport);
        };
        let told = std::mem::take(&mut self.told);
        let contexts = std::mem::take(&mut self.contexts);
        let session = Session {
            offer: Offer {
                name: self.wish.export.clone(),
                description: told.description,
                size,
                block: told.block.unwrap_or(BlockSizes::UNTOLD),
                features: Features::of_flags(flags),
                contexts: contexts
                    .iter()
                    .map(|(_, context)| context.clone())
                    .collect(),
            },
            agreed: Agreed {
                export: 0,
                style: self.style,
                contexts,
                sizes: Sizes::Asked,
            },
        };
        self.phase = Phase::Ended(ClientPhase::Agreed(session));
        Ok(())
    }

    /// Asks for the best style that is wanted, and is not better than `best`.
    fn ask_style(&mut self, best: Style) {
        match self.wish.style.min(best) {
            Style::Extended => self.ask(option::EXTENDED_HEADERS, &[]),
            Style::Structured => self.ask(option::STRUCTURED_REPLY, &[]),
            Style::Simple => self.ask_go(),
        }
    }

    fn ask_contexts(&mut self) {
        if self.wish.contexts.is_empty() {
            return self.ask_go();
        }
        let mut payload = self.named();
        payload.extend_from_slice(&wire::length32(self.wish.contexts.len()).to_be_bytes());
        for context in &self.wish.contexts {
            let name = context.name().as_bytes();
            payload.extend_from_slice(&wire::length32(name.len()).to_be_bytes());
            payload.extend_from_slice(name);
        }
        self.ask(option::SET_META_CONTEXT, &payload);
    }

    fn ask_go(&mut self) {
        let mut payload = self.named();
        for number in [2, about::DESCRIPTION, about::BLOCK_SIZE] {
            payload.extend_from_slice(&number.to_be_bytes());
        }
        self.ask(option::GO, &payload);
    }

    fn ask_old(&mut self) {
        let name = self.wish.export.clone();
        self.ask(option::EXPORT_NAME, name.as_str().as_bytes());
        self.phase = Phase::OldReply;
    }

    /// The export's name behind its length.
    fn named(&self) -> Vec<u8> {
        let name = self.wish.export.as_str().as_bytes();
        let mut payload = wire::length32(name.len()).to_be_bytes().to_vec();
        payload.extend_from_slice(name);
        payload
    }

    fn ask(&mut self, option: u32, payload: &[u8]) {
        self.out.extend_from_slice(&wire::IHAVEOPT.to_be_bytes());
        self.out.extend_from_slice(&option.to_be_bytes());
        let length = wire::length32(payload.len());
        self.out.extend_from_slice(&length.to_be_bytes());
        self.out.extend_from_slice(payload);
        self.replies = 0;
        self.phase = Phase::Header(option);
    }
}

/// The longest reply to an option that is taken, in bytes: two strings of the greatest length.
pub const ANSWER: usize = 2 * wire::STRING;
/// How many replies one option may have. A choice: four kinds are known.
pub const REPLIES: u32 = 64;
/// How many zeroes the old way has behind the flags.
const ZEROES: usize = 124;
