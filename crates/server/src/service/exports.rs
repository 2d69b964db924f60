//! The exports of a service, and their addresses.

use super::{Running, locked};
use crate::config::{Access, Listen, TlsNeed};
use crate::control::protocol::ListedExport;

impl Running {
    /// All exports of the configuration.
    pub(super) fn all_exports(&self) -> Vec<ListedExport> {
        let config = locked(&self.config);
        let exports = config.drives.iter().flat_map(|drive| &drive.exports);
        let mut listed: Vec<ListedExport> = exports
            .map(|export| ListedExport {
                name: export.name.clone(),
                volume: export.volume.clone(),
                class: export.class.name(),
                is_read_only: export.access == Access::ReadOnly,
                uri: None,
            })
            .collect();
        // The addresses look at the configuration, too.
        drop(config);
        for export in &mut listed {
            export.uri = self.uri(&export.name);
        }
        listed
    }

    /// The address of an export for a client on this machine, if there is one without TLS.
    pub(super) fn uri(&self, export: &str) -> Option<String> {
        let config = locked(&self.config);
        let mut plain = config.nbd.iter().filter(|nbd| {
            let tls = nbd.tls.as_ref();
            tls.is_none_or(|tls| tls.need != TlsNeed::Required)
        });
        plain.find_map(|nbd| match &nbd.listen {
            Listen::Unix(path) => Some(format!("nbd+unix:///{export}?socket={}", path.display())),
            Listen::Tcp(_) | Listen::Activated(_) => None,
        })
    }
}
