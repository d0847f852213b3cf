//! Thought trees and thought graphs.

use runwire_model::Json;
use runwire_model::event::{
    GotExpanded, GotNodeCompleted, GotNodeFailed, GotNodeStarted, GotPlanned, TotBacktracked, TotEvaluated,
    TotExpanded,
};

use super::frame::check_id;
use super::state::Sent;
use super::value::IntoJson;
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Says that a thought tree grows by candidates.
    pub async fn emit_tot_expanded(&self, candidates: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(TotExpanded { candidates: candidates.into_json() }).await
    }

    /// Says how the thoughts of a tree are judged, and which was chosen, from 0.
    pub async fn emit_tot_evaluated(&self, chosen: u64, scores: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(TotEvaluated { chosen: number(chosen), scores: scores.into_json() }).await
    }

    /// Says that a thought tree goes back to a depth, and why.
    pub async fn emit_tot_backtracked(
        &self,
        to_depth: u64,
        reason: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.emit(TotBacktracked { reason: reason.into(), to_depth: number(to_depth) }).await
    }

    /// Says that a thought graph is laid out.
    pub async fn emit_got_planned<I>(&self, node_ids: I, edge_count: u64) -> Result<Sent, EmitError>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let node_ids: Vec<String> = node_ids.into_iter().map(Into::into).collect();
        self.emit(GotPlanned {
            node_count: Some(number(node_ids.len() as u64)),
            edge_count: Some(number(edge_count)),
            node_ids: Some(serde_json::Value::from(node_ids).into_json()),
        })
        .await
    }

    /// Says that a node of a thought graph begins.
    pub async fn emit_got_node_start(&self, node_id: impl Into<String>) -> Result<Sent, EmitError> {
        self.emit(GotNodeStarted { node_id: id(node_id)? }).await
    }

    /// Says that a node of a thought graph is done, and what it found.
    pub async fn emit_got_node_end(
        &self,
        node_id: impl Into<String>,
        result_summary: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.emit(GotNodeCompleted { node_id: id(node_id)?, result_summary: result_summary.into() }).await
    }

    /// Says that a node of a thought graph failed.
    pub async fn emit_got_node_failed(
        &self,
        node_id: impl Into<String>,
        error: impl Into<String>,
    ) -> Result<Sent, EmitError> {
        self.emit(GotNodeFailed { node_id: id(node_id)?, error: error.into() }).await
    }

    /// Says that a thought graph grows from a node.
    pub async fn emit_got_expanded(
        &self,
        node_id: impl Into<String>,
        nodes_added: impl IntoJson,
        edges_added: impl IntoJson,
    ) -> Result<Sent, EmitError> {
        self.emit(GotExpanded {
            node_id: id(node_id)?,
            nodes_added: Some(nodes_added.into_json()),
            edges_added: Some(edges_added.into_json()),
        })
        .await
    }
}

fn id(node_id: impl Into<String>) -> Result<String, EmitError> {
    let node_id = node_id.into();
    check_id("node_id", &node_id)?;
    Ok(node_id)
}

fn number(number: u64) -> Json {
    Json::from_value(&number.into())
}
