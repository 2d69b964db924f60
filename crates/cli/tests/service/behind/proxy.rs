//! What may happen on the way to a server: a proxy that cuts connections, and one that lies.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What is done to connections that come through.
#[derive(Clone, Copy, Debug)]
pub enum Evil {
    /// Each of the first ones is cut when the server has sent so many bytes more than the one
    /// before.
    Cuts { connections: usize, bytes: usize },
    /// Of the first ones, a byte of the first reply is another one.
    Lies { connections: usize },
}

/// Listens on one socket for another; it lives as long as the test.
pub struct Proxy {
    came: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn between(front: &Path, behind: PathBuf, evil: Evil) -> Proxy {
        let listener = UnixListener::bind(front).expect("a socket");
        let came = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&came);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let Ok(server) = UnixStream::connect(&behind) else {
                    continue;
                };
                pass(client, server, evil, number);
            }
        });
        Proxy { came }
    }

    /// How many have come.
    pub fn connections(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

fn pass(client: UnixStream, server: UnixStream, evil: Evil, number: usize) {
    let requests = Arc::new(AtomicUsize::new(0));
    let (mut from, mut to) = (both(&client), both(&server));
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            // Requests of either style begin so; options do not.
            let is_request = chunk.starts_with(&[0x25, 0x60]) || chunk.starts_with(&[0x21, 0xE4]);
            counted.fetch_add(usize::from(is_request), Ordering::SeqCst);
            if to.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        let mut left = match evil {
            Evil::Cuts { connections, bytes } if number < connections => bytes * (number + 1),
            _ => usize::MAX,
        };
        let mut lies = matches!(evil, Evil::Lies { connections } if number < connections);
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            let has_asked = requests.load(Ordering::SeqCst) > 0;
            if has_asked && std::mem::take(&mut lies) {
                chunk[0] ^= 0xFF;
            }
            let count = match has_asked {
                true => count.min(left),
                false => count,
            };
            if to.write_all(&chunk[..count]).is_err() {
                break;
            }
            if has_asked {
                left -= count;
            }
            if left == 0 {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

fn both(stream: &UnixStream) -> UnixStream {
    stream.try_clone().expect("a file descriptor")
}
