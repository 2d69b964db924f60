//! What an operator hears of a mirror while it serves.

use super::Mirror;

/// A change of a mirror that an operator should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorEvent {
    /// The leg with this name failed. The other one serves alone.
    LegOut(String),
    /// The leg with this name has all data again.
    InSync(String),
    /// The last leg fails. Writes fail until the service is begun again.
    Broken,
}

/// Hears of events. The event loop calls it, so that it must not wait.
pub type MirrorObserver = Box<dyn Fn(MirrorEvent) + Send>;

impl Mirror {
    /// Tells this observer of events.
    #[must_use]
    pub fn observed_by(self, observer: MirrorObserver) -> Self {
        Mirror {
            observer: Some(observer),
            ..self
        }
    }

    pub(super) fn tell(&self, event: MirrorEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}
