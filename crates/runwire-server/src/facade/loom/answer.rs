//! Answers over Loom's socket: its document has interactions (`tool_approval`), but no message to answer them.

use runwire_log::{Interaction, InteractionQuery, RunKey};
use runwire_model::event::Decision;

use super::bad;
use crate::facade::start_run::{BodyFields, bad_field};
use crate::limits;
use crate::problem::Problem;
use crate::resources::interactions::PostedAnswer;
use crate::{AppState, interactions};

/// An accepted answer.
pub(super) struct AcceptedAnswer {
    pub(super) interaction: String,
    pub(super) decision: Decision,
}

/// Answers the interaction that a message names, else the only open one.
pub(super) async fn answer(
    state: &AppState,
    run: &RunKey,
    mut fields: BodyFields,
) -> Result<AcceptedAnswer, Problem> {
    let interaction_id = fields.text(&["interaction_id"])?;
    let call = fields.text(&["call_id"])?;
    let request = PostedAnswer {
        decision: decision(&mut fields)?,
        values: fields.json("values"),
        reason: fields.text(&["reason"])?,
    };
    let interaction = match interaction_id {
        Some(interaction) => interaction,
        None => open_interaction(state, run, call.as_deref()).await?,
    };
    let (_, answered) = interactions::answer(state, run, request.to(&interaction)?).await?;
    Ok(AcceptedAnswer { interaction, decision: answered.answer.decision })
}

/// Returns the decision: `decision`, else `approved`, else `submitted` if there are values.
fn decision(fields: &mut BodyFields) -> Result<Option<String>, Problem> {
    let approved = match fields.json("approved").map(|approved| approved.text().parse::<bool>()) {
        Some(Ok(approved)) => Some(if approved { "approved" } else { "rejected" }),
        Some(Err(_)) => return Err(bad_field("approved", "`true` or `false`")),
        None => None,
    };
    let decision = fields.text(&["decision"])?;
    let implied = approved.or_else(|| fields.has("values").then_some("submitted"));
    Ok(decision.or_else(|| implied.map(ToOwned::to_owned)))
}

async fn open_interaction(state: &AppState, run: &RunKey, call: Option<&str>) -> Result<String, Problem> {
    let query = InteractionQuery {
        tenant: run.tenant.to_string(),
        run: Some(run.id.to_string()),
        limit: limits::LIST_ITEMS,
        ..InteractionQuery::default()
    };
    let mut open = state.log.interactions(query).await?.interactions;
    if let Some(call) = call {
        open.retain(|interaction| interaction.question.call_id.as_deref() == Some(call));
    }
    let ids = |open: &[Interaction]| -> Vec<String> {
        open.iter().map(|interaction| interaction.question.interaction_id.clone()).collect()
    };
    match (open.as_slice(), call) {
        ([only], _) => Ok(only.question.interaction_id.clone()),
        // It may be settled: an approval of Loom has its call's id, and the log returns the answer that won.
        ([], Some(call)) => Ok(call.to_owned()),
        ([], None) => Err(bad("the run waits for nobody")),
        (several, _) => {
            let ids = ids(several);
            let detail = format!(
                "the run waits for several answers; name one as `interaction_id`: {}",
                ids.join(", ")
            );
            Err(bad(detail).with("interactions", ids))
        }
    }
}
