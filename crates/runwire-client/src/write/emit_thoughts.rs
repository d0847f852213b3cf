//! `emit_*` methods for trees and graphs of thoughts.

use runwire_model::Json;
use runwire_model::event::{
    GotExpanded, GotNodeCompleted, GotNodeFailed, GotNodeStarted, GotPlanned, TotBacktracked, TotEvaluated,
    TotExpanded,
};

use super::emission::check_id;
use super::state::PendingAck;
use super::value::IntoJson;
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Emits candidates of a thought tree.
    pub async fn emit_tot_expanded(&self, candidates: impl IntoJson) -> Result<PendingAck, EmitError> {
        self.emit(TotExpanded { candidates: candidates.into_json() }).await
    }

    /// Emits the scores of a thought tree, and the index of the chosen thought.
    pub async fn emit_tot_evaluated(
        &self,
        chosen: u64,
        scores: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
        self.emit(TotEvaluated { chosen: number(chosen), scores: scores.into_json() }).await
    }

    /// Emits that a thought tree backtracks to a depth.
    pub async fn emit_tot_backtracked(
        &self,
        to_depth: u64,
        reason: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(TotBacktracked { reason: reason.into(), to_depth: number(to_depth) }).await
    }

    /// Emits the plan of a thought graph.
    pub async fn emit_got_planned<I>(&self, node_ids: I, edge_count: u64) -> Result<PendingAck, EmitError>
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

    /// Emits the start of a thought graph's node.
    pub async fn emit_got_node_start(&self, node_id: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit(GotNodeStarted { node_id: id(node_id)? }).await
    }

    /// Emits the end of a thought graph's node, with its result.
    pub async fn emit_got_node_end(
        &self,
        node_id: impl Into<String>,
        result_summary: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(GotNodeCompleted { node_id: id(node_id)?, result_summary: result_summary.into() }).await
    }

    /// Emits the failure of a thought graph's node.
    pub async fn emit_got_node_failed(
        &self,
        node_id: impl Into<String>,
        error: impl Into<String>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(GotNodeFailed { node_id: id(node_id)?, error: error.into() }).await
    }

    /// Emits nodes and edges added to a thought graph.
    pub async fn emit_got_expanded(
        &self,
        node_id: impl Into<String>,
        nodes_added: impl IntoJson,
        edges_added: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
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
