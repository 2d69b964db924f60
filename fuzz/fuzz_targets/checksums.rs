//! Any bytes as the checksums of a volume: a region whose orders all succeed, or one error with a message.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use server::checksums::record::{RECORD_BYTES, Record};
use server::checksums::region::{Identity, Medium, Region};

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

fuzz_target!(|bytes: &[u8]| {
    if let Some(record) = bytes.first_chunk::<RECORD_BYTES>() {
        if let Some(found) = Record::decode(*record) {
            assert_eq!(found.encode(), *record);
        }
    }
    let identity = Identity {
        drive: "disk".to_owned(),
        volume: "data".to_owned(),
        block_bytes: 512,
        offset: 0,
        capacity: 1 << 24,
    };
    match Region::open(Bytes(bytes.to_vec()), &identity, 1 << 22) {
        Err(error) => assert!(error.to_string().contains("expected")),
        Ok((mut region, intents)) => {
            let chunks: Vec<u64> = intents.iter().map(|&(chunk, _)| chunk).collect();
            region.clear(&chunks).expect("memory");
            for chunk in 0..64 {
                let intent = intents.iter().find(|&&(of, _)| of == chunk);
                let doubted = intent.map_or(0, |&(_, pages)| pages);
                let beside = (doubted, 1 << (chunk % 16));
                region
                    .verify_beside(chunk, &[7; 16], beside)
                    .expect("memory");
                region.verify(chunk, &[7; 16], doubted).expect("memory");
            }
        }
    }
});
