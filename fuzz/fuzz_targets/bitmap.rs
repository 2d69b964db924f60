//! Any bytes as the file of a dirty bitmap: a bitmap whose orders all succeed, or one error with a message. The first
//! byte says whether the header is made right.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use server::checkpoint::bitmap::BitmapFile;
use server::checkpoint::bits::Bits;
use server::checksums::region::{Identity, Medium};

/// Storage in memory.
struct Bytes(Vec<u8>);

impl Medium for Bytes {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > 1 << 24 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.resize(bytes as usize, 0);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let from = self.0.get(offset as usize..offset as usize + bytes.len());
        bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const LENGTH: u64 = 1 << 30;

fuzz_target!(|bytes: &[u8]| {
    let identity = Identity {
        drive: "disk".to_owned(),
        volume: "data".to_owned(),
        block_bytes: 512,
        offset: 0,
        capacity: 1 << 32,
    };
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let mut medium = rest.to_vec();
    if first % 2 == 0 {
        // A whole header, and any bytes in the planes.
        let made = BitmapFile::create(
            Bytes(Vec::new()),
            identity.clone(),
            ("b".to_owned(), LENGTH),
            7,
        );
        medium = made.expect("memory").into_medium().0;
        for (to, from) in medium[512..].iter_mut().zip(rest) {
            *to = *from;
        }
    }
    match BitmapFile::open(Bytes(medium), &identity, LENGTH) {
        Err(error) => {
            assert!(error.to_string().contains("expected") || error.to_string().contains("remove"))
        }
        Ok((mut file, mut opened)) => {
            assert!(opened.assumed <= opened.dirty.count());
            file.mark(&[0, 1]).expect("memory");
            file.freeze(9).expect("memory");
            file.abandon(&opened.dirty).expect("memory");
            file.freeze(9).expect("memory");
            file.release().expect("memory");
            assert_eq!(file.base(), 9);
            file.resize(LENGTH * 2, &mut opened.dirty).expect("memory");
            let again = BitmapFile::open(file.into_medium(), &identity, LENGTH * 2);
            let (_, again) = again.expect("what was written");
            let mut expected = Bits::none(LENGTH * 2 / 65_536);
            expected.add(LENGTH / 65_536..LENGTH * 2 / 65_536);
            assert_eq!(again.dirty, expected);
        }
    }
});
