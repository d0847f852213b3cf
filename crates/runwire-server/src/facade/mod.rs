//! Façades: existing clients of other systems read here unchanged.

mod ag_ui;
mod agio;
pub(crate) mod social_app;

use std::sync::Arc;

use axum::Router;

use crate::Wire;

pub(crate) fn routes() -> Router<Arc<Wire>> {
    Router::new().merge(social_app::routes()).merge(agio::routes()).merge(ag_ui::routes())
}
