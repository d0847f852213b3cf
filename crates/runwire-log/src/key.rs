//! What threads and runs are called: a tenant and an id, in every key from the first schema on.

use std::sync::Arc;

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
