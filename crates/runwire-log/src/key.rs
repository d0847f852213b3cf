//! Keys of threads and runs: a tenant and an id.

use std::sync::Arc;

use crate::limits;

/// The key of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Its id, unique in the tenant.
    pub id: Arc<str>,
}

/// The key of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Its id, unique in the tenant.
    pub id: Arc<str>,
}

impl ThreadKey {
    /// Makes the key of a thread.
    pub fn new(tenant: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: id.into() }
    }

    /// Makes the key of the pseudo-thread that holds the producers of a tenant whose frames name their threads: it
    /// has no id, and no list shows it.
    pub fn of_tenant(tenant: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: "".into() }
    }
}

impl RunKey {
    /// Makes the key of a run.
    pub fn new(tenant: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: id.into() }
    }

    /// Makes the key of a thread of the same tenant.
    pub fn thread(&self, id: impl Into<Arc<str>>) -> ThreadKey {
        ThreadKey { tenant: self.tenant.clone(), id: id.into() }
    }
}

/// Returns whether an id that a frame names can be the id of a thread or a run.
pub(crate) fn is_usable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= limits::ID_BYTES && !id.chars().any(char::is_control)
}
