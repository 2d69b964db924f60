//! Clients that break the protocol, or go away in the middle of it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::Style;
use nbd::offer::PAYLOAD;
use nbd::request::{Asked, Header};
use proptest::prelude::*;

use crate::client::Client;
use crate::station::Served;

/// What is done.
#[derive(Clone, Debug)]
pub enum Hostile {
    /// Bytes instead of a negotiation.
    NoNegotiation(Vec<u8>),
    /// Bytes after a negotiation.
    Garbage(Vec<u8>),
    /// More payload than anybody may send.
    Oversized,
    /// Half of a header, and it is gone.
    HalfHeader,
}

pub fn hostile() -> impl Strategy<Value = Hostile> {
    let bytes = || prop::collection::vec(any::<u8>(), 28..200);
    prop_oneof![
        bytes().prop_map(Hostile::NoNegotiation),
        bytes().prop_map(Hostile::Garbage),
        Just(Hostile::Oversized),
        Just(Hostile::HalfHeader),
    ]
}

/// Such a client comes and goes.
pub fn meet(served: &Served, hostile: Hostile) {
    match hostile {
        Hostile::NoNegotiation(bytes) => {
            let mut stream = UnixStream::connect(served.socket()).expect("somebody listens");
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Hostile::Garbage(mut bytes) => {
            let mut client = Client::connect(&served.socket(), Style::Structured);
            bytes[0] = 0xFF;
            client.send(&bytes);
            assert!(client.is_closed_by_server());
        }
        Hostile::Oversized => {
            let mut client = Client::connect(&served.socket(), Style::Simple);
            let ask = Ask::Write {
                durability: Durability::Volatile,
            };
            send_unchecked(&mut client, ask, 0, u64::from(PAYLOAD) + 512);
            assert!(client.is_closed_by_server());
        }
        Hostile::HalfHeader => {
            let mut client = Client::connect(&served.socket(), Style::Simple);
            let mut bytes = Vec::new();
            header(&mut bytes, Ask::Read, Style::Simple, 1, 0, 512);
            client.send(&bytes[..bytes.len() / 2]);
            client.close_half();
            assert!(client.is_closed_by_server());
        }
    }
}

/// A request that our client would not send; of a write, a payload of zeroes if it is short.
pub fn send_unchecked(client: &mut Client, ask: Ask, offset: u64, length: u64) {
    let mut bytes = Vec::new();
    header(&mut bytes, ask, Style::Simple, 1, offset, length);
    if matches!(ask, Ask::Write { .. }) && length < 4096 {
        bytes.resize(bytes.len() + length as usize, 0);
    }
    client.send(&bytes);
}

/// Appends a request's header.
pub fn header(bytes: &mut Vec<u8>, ask: Ask, style: Style, cookie: u64, offset: u64, length: u64) {
    Header::new(Asked::Of(ask), style, cookie, offset, length).encode(bytes, style);
}

/// The error of a simple reply.
pub fn simple_answer(client: &mut Client) -> OperationError {
    let reply = client.exactly(16);
    match u32::from_be_bytes(reply[4..8].try_into().expect("four bytes")) {
        22 => OperationError::Invalid,
        28 => OperationError::NoSpace,
        75 => OperationError::TooLong,
        other => panic!("error {other}"),
    }
}
