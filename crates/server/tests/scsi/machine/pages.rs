//! What the answering machine says it is: inquiry pages, and its capacity.

use super::sense::NO_SUCH_FIELD;
use super::{Answer, Behind, MachineState};

impl MachineState {
    /// A page of INQUIRY.
    pub(super) fn inquiry(&self, vital: u8, page: u8) -> Answer {
        let body = match (vital & 1, page) {
            (0, 0) => {
                let vendor = match self.behind {
                    Behind::Scsi => b"HEADTIME",
                    Behind::Ata => b"ATA     ",
                };
                let mut answer = vec![0, 0, 6, 2, 31, 0, 0, 2];
                answer.extend_from_slice(vendor);
                answer.extend_from_slice(b"ANSWERER        0001");
                return Ok(answer);
            }
            (1, 0x80) => b"  SERIAL".to_vec(),
            (1, 0x89) if self.behind == Behind::Ata => vec![0; 568],
            (1, 0xb0) => {
                let mut body = vec![0; 60];
                body[4..8].copy_from_slice(&2048u32.to_be_bytes());
                body
            }
            (1, 0xb1) => {
                let turn = self.drive.truth().spindle.period_ps() / 1000;
                let rate = (60_000_000_000 / turn) as u16;
                let mut body = rate.to_be_bytes().to_vec();
                body.resize(60, 0);
                body
            }
            (1, 0xb9) if !self.ranges.is_empty() => {
                let mut body = vec![0; 60];
                for (first, blocks) in &self.ranges {
                    let mut range = [0; 32];
                    range[8..16].copy_from_slice(&first.to_be_bytes());
                    range[16..24].copy_from_slice(&blocks.to_be_bytes());
                    body.extend_from_slice(&range);
                }
                body
            }
            _ => return Err((NO_SUCH_FIELD, None)),
        };
        let mut answer = vec![0, page];
        answer.extend_from_slice(&(body.len() as u16).to_be_bytes());
        answer.extend_from_slice(&body);
        Ok(answer)
    }

    /// The answer of READ CAPACITY (16).
    pub(super) fn capacity(&self) -> Vec<u8> {
        let truth = self.drive.truth();
        let mut answer = (self.blocks() - 1).to_be_bytes().to_vec();
        answer.extend_from_slice(&truth.block_bytes.to_be_bytes());
        let ratio = truth.physical_block_bytes / truth.block_bytes;
        answer.extend_from_slice(&[0, ratio.ilog2() as u8]);
        answer.resize(32, 0);
        answer
    }
}
