//! What threads and runs are called: a tenant and an id, in every key from the first schema on.

use std::sync::Arc;

use crate::limits;

/// Names a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// Its id, unique in the tenant.
    pub id: Arc<str>,
}

/// Names a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// Its id, unique in the tenant.
    pub id: Arc<str>,
}

impl ThreadKey {
    /// Names a thread of a tenant.
    pub fn new(tenant: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: id.into() }
    }

    /// Names the row that holds the producers of a tenant whose frames name their threads: a thread without an id,
    /// which no list shows.
    pub fn of_tenant(tenant: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: "".into() }
    }
}

impl RunKey {
    /// Names a run of a tenant.
    pub fn new(tenant: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), id: id.into() }
    }

    /// Names the thread of the same tenant.
    pub fn thread(&self, id: impl Into<Arc<str>>) -> ThreadKey {
        ThreadKey { tenant: self.tenant.clone(), id: id.into() }
    }
}

/// Returns whether a producer's word can be the id of a thread or a run.
pub(crate) fn is_usable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= limits::ID_BYTES && !id.chars().any(char::is_control)
}
