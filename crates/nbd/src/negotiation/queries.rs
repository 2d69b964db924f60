//! What clients ask about exports: the options that name one.

use std::sync::Arc;

use super::super::wire::{self, Fields, about, answer, option};
use super::super::{Context, DIRTY_BITMAP};
use super::{Selected, ServerError, ServerNegotiation, ServerSecurity, Sizes, Tls};

impl ServerNegotiation {
    /// `NBD_OPT_EXPORT_NAME`: the old way, without a reply for errors.
    pub(super) fn export_name(&mut self, name: &[u8]) {
        if self.security == ServerSecurity::Required && self.tls == Tls::Off {
            return self.close(ServerError::TlsRequired);
        }
        if self.style.extended() {
            return self.close(ServerError::ExtendedName);
        }
        let Some(export) = self.find(name) else {
            return self.close(ServerError::Unknown);
        };
        let offer = &self.exports[export];
        let flags = offer.features.flags(self.style);
        self.out.extend_from_slice(&offer.size.to_be_bytes());
        self.out.extend_from_slice(&flags.to_be_bytes());
        if !self.client.no_zeroes {
            self.out.extend_from_slice(&[0; ZEROES]);
        }
        self.agree(export, Sizes::NotAsked);
    }

    /// `NBD_OPT_LIST`.
    pub(super) fn list(&mut self, payload: &[u8]) {
        let exports = Arc::clone(&self.exports);
        let mut answers = self.answers(option::LIST);
        if !payload.is_empty() {
            return answers.error(answer::INVALID, "this option has no payload");
        }
        for offer in exports.iter() {
            answers.server(offer);
        }
        answers.ack();
    }

    /// `NBD_OPT_INFO` and `NBD_OPT_GO`.
    pub(super) fn export(&mut self, option: u32, payload: &[u8]) {
        let Some((name, wanted)) = information(payload) else {
            let reason = "expected a name and as many information requests as it says";
            return self.answers(option).error(answer::INVALID, reason);
        };
        let Some(export) = self.find(name) else {
            return self.unknown(option);
        };
        let exports = Arc::clone(&self.exports);
        let offer = &exports[export];
        let style = self.style;
        let asked = |kind: u16| wanted.iter().any(|pair| *pair == kind.to_be_bytes());
        let mut answers = self.answers(option);
        answers.about_export(offer, style);
        if asked(about::NAME) {
            answers.about_name(offer);
        }
        if asked(about::DESCRIPTION) {
            answers.about_description(offer);
        }
        // Told without being asked, too: many clients do not ask, and keep to it then.
        answers.about_block_size(offer);
        answers.ack();
        if option == option::GO {
            let sizes = if asked(about::BLOCK_SIZE) {
                Sizes::Asked
            } else {
                Sizes::NotAsked
            };
            self.agree(export, sizes);
        }
    }

    /// `NBD_OPT_LIST_META_CONTEXT`.
    pub(super) fn list_contexts(&mut self, payload: &[u8]) {
        let Some((export, queries)) = self.queries(option::LIST_META_CONTEXT, payload) else {
            return;
        };
        let exports = Arc::clone(&self.exports);
        let mut answers = self.answers(option::LIST_META_CONTEXT);
        for context in &exports[export].contexts {
            let name = context.name().as_bytes();
            let listed = |query: &[u8]| {
                name == query || WILDCARDS.contains(&query) && name.starts_with(query)
            };
            if queries.is_empty() || queries.iter().any(|query| listed(query)) {
                answers.context(0, context);
            }
        }
        answers.ack();
    }

    /// `NBD_OPT_SET_META_CONTEXT`. What was selected before is dropped, whatever comes of this.
    pub(super) fn set_contexts(&mut self, payload: &[u8]) {
        self.contexts = None;
        let Some((export, queries)) = self.queries(option::SET_META_CONTEXT, payload) else {
            return;
        };
        let exports = Arc::clone(&self.exports);
        let selected: Vec<(u32, Context)> = (FIRST_CONTEXT..)
            .zip(exports[export].contexts.iter().cloned())
            .filter(|(_, context)| queries.contains(&context.name().as_bytes()))
            .collect();
        let mut answers = self.answers(option::SET_META_CONTEXT);
        for (id, context) in &selected {
            answers.context(*id, context);
        }
        answers.ack();
        self.contexts = Some(Selected {
            export,
            contexts: selected,
        });
    }

    /// The export and the queries of both. If there are none, that is answered.
    fn queries<'a>(&mut self, option: u32, payload: &'a [u8]) -> Option<(usize, Vec<&'a [u8]>)> {
        if !self.style.structured() {
            let reason = "agree on structured replies or extended headers first";
            self.answers(option).error(answer::INVALID, reason);
            return None;
        }
        let Some((name, queries)) = name_and_queries(payload) else {
            let reason = "expected a name and as many queries as it says";
            self.answers(option).error(answer::INVALID, reason);
            return None;
        };
        let Some(export) = self.find(name) else {
            self.unknown(option);
            return None;
        };
        Some((export, queries))
    }

    fn unknown(&mut self, option: u32) {
        let reason = "there is no export of this name";
        self.answers(option).error(answer::UNKNOWN, reason);
    }
}

/// A name and the information requests behind it, if that is all.
fn information(payload: &[u8]) -> Option<(&[u8], &[[u8; 2]])> {
    let mut bytes = Fields(payload);
    let name = bytes.string()?;
    let count = usize::from(bytes.u16()?);
    let (wanted, odd) = bytes.0.as_chunks::<2>();
    (wanted.len() == count && odd.is_empty() && name.len() <= wire::STRING)
        .then_some((name, wanted))
}

/// A name and the queries behind it, if that is all.
fn name_and_queries(payload: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut bytes = Fields(payload);
    let name = bytes.string()?;
    let count = bytes.u32()?;
    let mut queries = Vec::new();
    // Each query takes four bytes at least: no more are held than the payload has room for.
    for _ in 0..count {
        let query = bytes.string()?;
        if query.len() > wire::STRING {
            return None;
        }
        queries.push(query);
    }
    (bytes.0.is_empty() && name.len() <= wire::STRING).then_some((name, queries))
}

/// The queries for all contexts of the protocol's document, of QEMU, and of QEMU's bitmaps. They list, and select
/// nothing.
const WILDCARDS: [&[u8]; 3] = [b"base:", b"qemu:", DIRTY_BITMAP.as_bytes()];
/// The number of an export's first context. A choice: not the 0 that lists have.
const FIRST_CONTEXT: u32 = 1;
/// How many zeroes the old way has behind the flags.
const ZEROES: usize = 124;
