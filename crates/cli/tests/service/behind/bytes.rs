//! What is written through is what is behind, and the other way round.

use block::Durability;
use block::operation::{Ask, OperationError, Space, ZeroingPace};
use nbd::request::{Asked, Wanted};
use nbd::{HOLE, Style, ZERO};

use super::process::{Folder, SIZE, has};
use crate::client::Client;

const VOLATILE: Durability = Durability::Volatile;
const WRITE: Asked = Asked::Of(Ask::Write {
    durability: VOLATILE,
});
const READ: Asked = Asked::Of(Ask::Read);

/// Bytes that look like chance: pieces of them, holes between them.
fn write_pieces(folder: &Folder, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; SIZE as usize];
    for piece in 0..20_u64 {
        let from = (piece * piece * 131_072) as usize % (SIZE as usize - (1 << 20));
        let length = 4096 * (1 + piece as usize * 7);
        for (place, byte) in bytes[from..from + length].iter_mut().enumerate() {
            *byte = (place as u64 ^ piece)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .to_le_bytes()[5];
        }
    }
    std::fs::write(folder.path(name), &bytes).expect("written");
    bytes
}

#[test]
fn nbdcopy_brings_back_what_it_took_through_two_services() {
    if !has("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let drive = folder.emulate("drive");
    let middle = folder.over("middle", &folder.uri("drive"), "");
    let front = folder.over("front", &folder.uri("middle"), "");
    let bytes = write_pieces(&folder, "source");
    folder.runs("nbdcopy --flush source @front");
    for how in ["@front", "--connections=4 @front", "@middle", "@drive"] {
        folder.runs(&format!("nbdcopy {how} back"));
        let back = std::fs::read(folder.path("back")).expect("a copy");
        assert!(back == bytes, "nbdcopy {how} brings something else back");
    }
    assert_eq!(
        folder.runs("nbdinfo --map @front"),
        folder.runs("nbdinfo --map @drive"),
        "holes are seen through both"
    );
    front.stop();
    middle.stop();
    drive.stop();
}

#[test]
fn qemu_nbd_is_served_as_any_other() {
    if !has("qemu-nbd") || !has("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let bytes = write_pieces(&folder, "image");
    let socket = folder.path("qemu").display().to_string();
    let words = format!("qemu-nbd -f raw -t -e 8 --discard=unmap -k {socket} image");
    let _qemu = folder.other("qemu", &words);
    let front = folder.over("front", &folder.uri("qemu"), "");
    folder.runs("nbdcopy @front back");
    let back = std::fs::read(folder.path("back")).expect("a copy");
    assert!(back == bytes);
    let mut client = Client::connect(&folder.path("front"), Style::Extended);
    let payload = vec![0xA5; 3 << 20];
    let durable = Asked::Of(Ask::Write {
        durability: Durability::Durable,
    });
    let end = client.ask(durable, 512, payload.len() as u64, &payload);
    assert_eq!(end.result, Ok(()));
    let trim = Asked::Of(Ask::Trim {
        durability: VOLATILE,
    });
    assert_eq!(client.ask(trim, 1 << 20, 1 << 20, &[]).result, Ok(()));
    let zero = Asked::Of(Ask::Zero {
        durability: Durability::Durable,
        space: Space::Kept,
        pace: ZeroingPace::Any,
    });
    assert_eq!(client.ask(zero, 2 << 20, 4096, &[]).result, Ok(()));
    let flush = Asked::Of(Ask::Flush);
    assert_eq!(client.ask(flush, 0, 0, &[]).result, Ok(()));
    let image = std::fs::read(folder.path("image")).expect("the image");
    let mut expected = bytes;
    expected[512..512 + payload.len()].copy_from_slice(&payload);
    expected[1 << 20..2 << 20].fill(0);
    expected[2 << 20..(2 << 20) + 4096].fill(0);
    assert!(image == expected, "what was asked for is on the image");
    let end = client.ask(READ, 0, 8 << 20, &[]);
    assert!(end.bytes == expected[..8 << 20]);
    let status = Asked::BlockStatus {
        wanted: Wanted::Many,
    };
    let end = client.ask(status, 1 << 20, 1 << 20, &[]);
    assert_eq!(end.states.len(), 1);
    assert_eq!(end.states[0].state, HOLE | ZERO, "{:?}", end.states);
    drop(client);
    front.stop();
}

/// The server behind takes a mebibyte at once, and ours 32.
#[test]
fn long_requests_are_divided_as_the_server_wants_them() {
    let folder = Folder::new();
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    let small = "[limits]\nrequest_size = \"1 MiB\"\n[[nbd]]\nunix = \"small\"\n";
    let behind = folder.serve("small", memory, small);
    let front = folder.over("front", &folder.uri("small"), "");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let words = (0_u64..(24 << 20) / 8).map(|word| word.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let payload: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let end = client.ask(WRITE, 4608, payload.len() as u64, &payload);
    assert_eq!(end.result, Ok(()));
    let end = client.ask(READ, 4608, payload.len() as u64, &[]);
    assert_eq!(end.result, Ok(()));
    assert!(end.bytes == payload);
    let mut direct = Client::connect(&folder.path("small"), Style::Structured);
    let end = direct.ask(READ, 4608 + (7 << 20), 1 << 20, &[]);
    assert!(end.bytes == payload[7 << 20..8 << 20], "it is behind, too");
    drop((client, direct));
    front.stop();
    behind.stop();
}

/// Behind an emulated drive zeroes are written where it turns: what has to be fast is refused.
#[test]
fn what_the_server_refuses_is_refused() {
    let folder = Folder::new();
    let drive = folder.emulate("drive");
    let front = folder.over("front", &folder.uri("drive"), "");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let zero = |pace| {
        Asked::Of(Ask::Zero {
            durability: VOLATILE,
            space: Space::MayBeFreed,
            pace,
        })
    };
    assert_eq!(client.ask(WRITE, 0, 8192, &[7; 8192]).result, Ok(()));
    let end = client.ask(zero(ZeroingPace::Fast), 0, 4096, &[]);
    assert_eq!(end.result, Err(OperationError::Unsupported));
    assert_eq!(
        client.ask(zero(ZeroingPace::Any), 0, 4096, &[]).result,
        Ok(())
    );
    let end = client.ask(READ, 0, 8192, &[]);
    assert!(end.bytes[..4096] == [0; 4096] && end.bytes[4096..] == [7; 4096]);
    drop(client);
    front.stop();
    drive.stop();
}

#[test]
fn what_cannot_be_served_is_said_at_the_start() {
    let folder = Folder::new();
    let uri = folder.uri("nobody");
    let said = folder.refused(&format!("{{ kind = \"nbd\", uri = \"{uri}\" }}"));
    assert!(
        said.contains("nobody") && said.contains("No such file"),
        "{said}"
    );
    let memory = "{ kind = \"memory\", size = \"1 MiB\" }";
    let doors = "read_only = true\n[[nbd]]\nunix = \"quiet\"\n";
    let _quiet = folder.serve("quiet", memory, doors);
    let named = uri.replace("///", "///x").replace("nobody", "quiet");
    let said = folder.refused(&format!("{{ kind = \"nbd\", uri = \"{named}\" }}"));
    assert!(said.contains("the server refused"), "{said}");
    let uri = folder.uri("quiet");
    let said = folder.refused(&format!("{{ kind = \"nbd\", uri = \"{uri}\" }}"));
    assert!(
        said.contains("it may only be read: expected read_only = true of volume v"),
        "{said}"
    );
    let plain = format!("{{ kind = \"nbd\", uri = \"{uri}\" }}").replace("nbd+", "nbds+");
    let said = folder.refused(&plain);
    assert!(said.contains("back_end.ca: missing key"), "{said}");
}
