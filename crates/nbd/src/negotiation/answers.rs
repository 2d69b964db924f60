//! Answers to options: from what is known to bytes.

use super::super::offer::Offer;
use super::super::wire::{self, about, answer};
use super::super::{Context, Style};

/// Answers to one option, behind what is in the output already.
#[derive(Debug)]
pub struct Answers<'a> {
    option: u32,
    out: &'a mut Vec<u8>,
}

impl<'a> Answers<'a> {
    /// Answers to `option`.
    pub const fn to(option: u32, out: &'a mut Vec<u8>) -> Self {
        Self { option, out }
    }

    /// It is done.
    pub fn ack(&mut self) {
        self.begin(answer::ACK, 0);
    }

    /// It is not done, and why.
    pub fn error(&mut self, kind: u32, reason: &str) {
        self.begin(kind, reason.len());
        self.out.extend_from_slice(reason.as_bytes());
    }

    /// The option was longer than any that is looked at.
    pub fn too_big(&mut self) {
        self.error(
            answer::TOO_BIG,
            "an option of at most 16384 bytes is expected",
        );
    }

    /// An export is offered (`NBD_REP_SERVER`).
    pub fn server(&mut self, offer: &Offer) {
        let name = offer.name.as_str().as_bytes();
        let description = offer.description.as_str().as_bytes();
        self.begin(answer::SERVER, 4 + name.len() + description.len());
        self.u32(wire::length32(name.len()));
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(description);
    }

    /// A context (`NBD_REP_META_CONTEXT`).
    pub fn context(&mut self, id: u32, context: &Context) {
        let name = context.name().as_bytes();
        self.begin(answer::META_CONTEXT, 4 + name.len());
        self.u32(id);
        self.out.extend_from_slice(name);
    }

    /// Size and flags (`NBD_INFO_EXPORT`).
    pub fn about_export(&mut self, offer: &Offer, style: Style) {
        self.begin(answer::INFO, 12);
        self.u16(about::EXPORT);
        self.out.extend_from_slice(&offer.size.to_be_bytes());
        self.u16(offer.features.flags(style));
    }

    /// The name (`NBD_INFO_NAME`).
    pub fn about_name(&mut self, offer: &Offer) {
        self.text(about::NAME, offer.name.as_str());
    }

    /// The description (`NBD_INFO_DESCRIPTION`).
    pub fn about_description(&mut self, offer: &Offer) {
        self.text(about::DESCRIPTION, offer.description.as_str());
    }

    /// The block sizes (`NBD_INFO_BLOCK_SIZE`).
    pub fn about_block_size(&mut self, offer: &Offer) {
        self.begin(answer::INFO, 14);
        self.u16(about::BLOCK_SIZE);
        self.u32(offer.block.min());
        self.u32(offer.block.preferred());
        self.u32(offer.block.max());
    }

    fn text(&mut self, kind: u16, text: &str) {
        self.begin(answer::INFO, 2 + text.len());
        self.u16(kind);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn begin(&mut self, kind: u32, length: usize) {
        self.out
            .extend_from_slice(&wire::OPTION_REPLY.to_be_bytes());
        self.u32(self.option);
        self.u32(kind);
        self.u32(wire::length32(length));
    }

    fn u16(&mut self, number: u16) {
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.out.extend_from_slice(&number.to_be_bytes());
    }
}
