//! Answers over Loom's socket, which its document asks for (`tool_approval`) and has no message for.

use runwire_log::{Interaction, InteractionQuery, RunKey};
use runwire_model::event::Decision;

use super::bad;
use crate::facade::start::{Fields, bad_field};
use crate::limits;
use crate::problem::Problem;
use crate::resources::interactions::PostedAnswer;
use crate::{AppState, interactions};

/// An answer that was given.
pub(super) struct Given {
    pub(super) interaction: String,
    pub(super) decision: Decision,
}

/// Gives the answer that a message holds; the question is the one that it names, else the only one that is open.
pub(super) async fn answer(state: &AppState, run: &RunKey, mut fields: Fields) -> Result<Given, Problem> {
    let named = fields.text(&["interaction_id"])?;
    let call = fields.text(&["call_id"])?;
    let request = PostedAnswer {
        decision: decision(&mut fields)?,
        values: fields.json("values"),
        reason: fields.text(&["reason"])?,
    };
    let interaction = match named {
        Some(interaction) => interaction,
        None => question(state, run, call.as_deref()).await?,
    };
    let (_, answered) = interactions::answer(state, run, request.to(&interaction)?).await?;
    Ok(Given { interaction, decision: answered.answer.decision })
}

/// Reads `decision`, or `approved`, or that there are values.
fn decision(fields: &mut Fields) -> Result<Option<String>, Problem> {
    let approved = match fields.json("approved").map(|approved| approved.text().parse::<bool>()) {
        Some(Ok(approved)) => Some(if approved { "approved" } else { "rejected" }),
        Some(Err(_)) => return Err(bad_field("approved", "`true` or `false`")),
        None => None,
    };
    let said = fields.text(&["decision"])?;
    let implied = approved.or_else(|| fields.has("values").then_some("submitted"));
    Ok(said.or_else(|| implied.map(ToOwned::to_owned)))
}

async fn question(state: &AppState, run: &RunKey, call: Option<&str>) -> Result<String, Problem> {
    let query = InteractionQuery {
        tenant: run.tenant.to_string(),
        run: Some(run.id.to_string()),
        limit: limits::LIST_ITEMS,
        ..InteractionQuery::default()
    };
    let mut open = state.log.interactions(query).await?.interactions;
    if let Some(call) = call {
        open.retain(|asked| asked.question.call_id.as_deref() == Some(call));
    }
    let ids = |open: &[Interaction]| -> Vec<String> {
        open.iter().map(|asked| asked.question.interaction_id.clone()).collect()
    };
    match (open.as_slice(), call) {
        ([only], _) => Ok(only.question.interaction_id.clone()),
        // It may have been answered already: an approval of Loom's has its call's id, and whoever answers knows the rest.
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
