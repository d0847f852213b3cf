//! Removes the back end's figures from events before they are written.
//!
//! A figure is identified by its name and its location. It is removed where a back end describes itself: in the fields
//! of an event that the model does not know, in its summary, its metadata, its error, and in frames of unknown type.
//! Arguments, results, `ui_schema`, state, messages and answers are business data: a tool may have an argument that is
//! called `model`.

use crate::dialect::encode::field_of;
use crate::event::{Body, ErrorInfo, Event, Extra, Foreign, Summary};
use crate::json::{Json, Object, ObjectWriter};

/// Names of the back end's figures: first those of the document, then their names in other dialects.
const FIGURES: &[&str] = &[
    "inputTokens",
    "outputTokens",
    "cost",
    "latencyMs",
    "model",
    "input_tokens",
    "output_tokens",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "promptTokens",
    "completionTokens",
    "totalTokens",
    "latency_ms",
    "response_latency",
    "response_latency_ms",
    "model_name",
    "modelName",
    "usage",
    "metrics",
];

/// Names of objects in a frame's envelope that may contain figures.
const ENVELOPES: &[&str] = &["data", "payload", "metadata", "meta", "extra", "summary", "error", "rawEvent"];

/// Returns the event without figures; `None` if it has none.
pub(super) fn scrubbed(event: &Event) -> Option<Event> {
    let may_tell = match &event.body {
        Body::RunStarted(started) => started.input.is_some(),
        Body::RunCompleted(completed) => completed.summary.is_some(),
        Body::RunCancelled(cancelled) => cancelled.summary.is_some(),
        Body::StepFinished(finished) => finished.error.is_some(),
        Body::TextFinished(finished) => finished.error.is_some(),
        Body::ToolFinished(finished) => finished.error.is_some(),
        Body::Data(data) => data.metadata.is_some(),
        Body::Notice(notice) => notice.domain.as_deref() != Some("business"),
        Body::RunFailed(_) | Body::Foreign(_) => true,
        _ => false,
    };
    if !may_tell && event.extra.is_empty() {
        return None;
    }
    let mut event = event.clone();
    match &mut event.body {
        // What the run was given may hold anything of the back end's.
        Body::RunStarted(started) => started.input = None,
        Body::RunCompleted(completed) => scrub_summary(&mut completed.summary),
        Body::RunCancelled(cancelled) => scrub_summary(&mut cancelled.summary),
        Body::RunFailed(failed) => {
            scrub_summary(&mut failed.summary);
            // What a business rule says is business data.
            if failed.error.domain.as_deref() != Some("business") {
                scrub_error(Some(&mut failed.error));
            }
        }
        Body::StepFinished(finished) => scrub_error(finished.error.as_mut()),
        Body::TextFinished(finished) => scrub_value(finished.error.as_mut()),
        Body::ToolFinished(finished) => {
            scrub_error(finished.error.as_mut());
            // No figure, but the document says that results do not carry it any more (§3.3).
            event.extra.take("ui_schema");
        }
        Body::Data(data) => scrub_value(data.metadata.as_mut()),
        Body::Notice(notice) if notice.domain.as_deref() == Some("business") => {}
        Body::Notice(notice) => scrub_value(notice.details.as_mut()),
        Body::Foreign(foreign) => scrub_foreign(foreign),
        _ => {}
    }
    scrub_extra(&mut event.extra);
    if may_tell {
        scrub_details(&mut event.extra);
    }
    Some(event)
}

/// Reduces a summary to the counts that a person sees.
fn scrub_summary(summary: &mut Option<Summary>) {
    let Some(full) = summary.take() else { return };
    let kept = Summary { steps: full.steps, tool_calls: full.tool_calls, ..Summary::default() };
    *summary = Some(kept).filter(|kept| *kept != Summary::default());
}

fn scrub_error(error: Option<&mut ErrorInfo>) {
    if let Some(error) = error {
        scrub_extra(&mut error.extra);
        scrub_value(error.details.as_mut());
    }
}

/// Removes the figures of an error's details that the model has no field for, such as Agio's.
fn scrub_details(extra: &mut Extra) {
    extra.retain(|name, value| {
        if matches!(field_of(name), "details" | "detail") {
            scrub_value(Some(value));
        }
        true
    });
}

fn scrub_foreign(foreign: &mut Foreign) {
    // An exported frame has one field, which holds the rest.
    let is_wrapped = foreign.dialect == "loom-export";
    if let Some(frame) = without_figures(&foreign.frame, |name| is_wrapped || ENVELOPES.contains(&name)) {
        foreign.frame = frame;
    }
}

fn scrub_extra(extra: &mut Extra) {
    extra.retain(|name, value| {
        let field = field_of(name);
        if ENVELOPES.contains(&field) {
            scrub_value(Some(value));
        }
        !FIGURES.contains(&field)
    });
}

fn scrub_value(value: Option<&mut Json>) {
    if let Some(value) = value
        && let Some(scrubbed) = without_figures(value, |name| ENVELOPES.contains(&name))
    {
        *value = scrubbed;
    }
}

/// Copies an object without its figures, also without those in fields that `is_searched` selects; `None` for any other
/// value.
fn without_figures(value: &Json, is_searched: impl Fn(&str) -> bool) -> Option<Json> {
    let object = Object::of_json(value)?;
    let mut out = Vec::with_capacity(value.text().len());
    let mut writer = ObjectWriter::begin(&mut out);
    for (name, raw) in object.fields().filter(|(name, _)| !FIGURES.contains(name)) {
        let mut field = Json::from_raw(raw);
        if is_searched(name) {
            scrub_value(Some(&mut field));
        }
        writer.json(name, &field);
    }
    writer.end();
    Some(Json::from_written(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: &str) -> String {
        let event = Event::from_json(&Json::parse(event).unwrap()).unwrap();
        scrubbed(&event).unwrap_or(event).to_json().text().to_owned()
    }

    #[test]
    fn figures_go_where_a_back_end_tells_of_itself() {
        for (event, expected) in [
            (
                r#"{"type":"run.started","message":"hi","input":{"model":"m"}}"#,
                r#"{"type":"run.started","message":"hi"}"#,
            ),
            (
                r#"{"type":"run.completed","summary":{"total_tokens":3,"duration_ms":5,"steps":1,"model":"m","cost":1}}"#,
                r#"{"type":"run.completed","summary":{"steps":1}}"#,
            ),
            (
                r#"{"type":"run.completed","summary":{"tool_calls":1,"cached_tokens":3,"cost_usd":0.1,"first_token_latency":2}}"#,
                r#"{"type":"run.completed","summary":{"tool_calls":1}}"#,
            ),
            (
                r#"{"type":"notice","level":"error","message":"no","extra":{"details":{"model":"m","at":1}}}"#,
                r#"{"type":"notice","level":"error","message":"no","extra":{"details":{"at":1}}}"#,
            ),
            (
                r#"{"type":"tool.finished","call_id":"c","status":"failure","error":{"message":"no"},"extra":{"details":{"total_tokens":5,"at":1}}}"#,
                r#"{"type":"tool.finished","call_id":"c","status":"failure","error":{"message":"no"},"extra":{"details":{"at":1}}}"#,
            ),
            (
                r#"{"type":"run.failed","error":{"message":"no"},"extra":{"details":{"model_name":"m","at":1}}}"#,
                r#"{"type":"run.failed","error":{"message":"no"},"extra":{"details":{"at":1}}}"#,
            ),
            (
                r#"{"type":"run.cancelled","summary":{"response_latency_ms":3}}"#,
                r#"{"type":"run.cancelled"}"#,
            ),
            (
                r#"{"type":"run.failed","error":{"message":"no","details":{"model":"m","at":1},"cost":2}}"#,
                r#"{"type":"run.failed","error":{"message":"no","details":{"at":1}}}"#,
            ),
            (
                r#"{"type":"step.finished","name":"a","extra":{"metadata.model_name":"m","metadata":{"cost":1,"k":{"model":"m"}},"meta.latency_ms":2,"usage":[1],"note":{"model":"m"}}}"#,
                r#"{"type":"step.finished","name":"a","extra":{"metadata":{"k":{"model":"m"}},"note":{"model":"m"}}}"#,
            ),
            (
                r#"{"type":"foreign","dialect":"agio","frame":{"type":"x","model":"m","data":{"total_tokens":1,"rows":[{"model":"m"}],"metadata":{"cost":1}},"metadata":{"model_name":"m"},"usage":{"a":1}}}"#,
                r#"{"type":"foreign","dialect":"agio","frame":{"type":"x","data":{"rows":[{"model":"m"}],"metadata":{}},"metadata":{}}}"#,
            ),
            (
                r#"{"type":"foreign","dialect":"loom-export","frame":{"Cost":{"model":"m","text":"t"}}}"#,
                r#"{"type":"foreign","dialect":"loom-export","frame":{"Cost":{"text":"t"}}}"#,
            ),
            (
                r#"{"type":"data","data_type":"table","data":{"model":"m"},"metadata":{"model":"m","title":"T"}}"#,
                r#"{"type":"data","data_type":"table","data":{"model":"m"},"metadata":{"title":"T"}}"#,
            ),
        ] {
            assert_eq!(shown(event), expected);
        }
    }

    #[test]
    fn business_data_stays_as_it_is() {
        for event in [
            r#"{"type":"tool.called","call_id":"c","name":"buy","arguments":{"model":"Z4","cost":{"model":1},"usage":"daily"}}"#,
            r#"{"type":"tool.finished","call_id":"c","status":"success","result":{"model":"Z4","metrics":[1]}}"#,
            r#"{"type":"text.finished","message_id":"m","key_points":[{"model":1}],"ui_schema":{"model":"Z4","meta":{"cost":1}}}"#,
            r#"{"type":"state.snapshot","state":{"model":"Z4","metadata":{"cost":1}}}"#,
            r#"{"type":"messages.snapshot","messages":[{"id":"m","role":"user","content":"x","model":"Z4"}]}"#,
            r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{"properties":{"model":{}}},"arguments":{"cost":1}}"#,
            r#"{"type":"interaction.resolved","interaction_id":"q","decision":"submitted","values":{"model":"Z4"}}"#,
            r#"{"type":"run.completed","result":{"model":"Z4"}}"#,
            r#"{"type":"notice","level":"error","domain":"business","message":"sold out","details":{"model":"Z4","cost":3}}"#,
            r#"{"type":"run.failed","error":{"domain":"business","message":"sold out","details":{"model":"Z4"}}}"#,
            r#"{"type":"custom","name":"badge","value":{"cost":0.5}}"#,
        ] {
            assert_eq!(shown(event), event);
        }
    }

    #[test]
    fn a_result_carries_no_ui_schema() {
        let event = r#"{"type":"tool.finished","call_id":"c","status":"success","extra":{"ui_schema":{"a":1},"kept":1}}"#;
        assert_eq!(
            shown(event),
            r#"{"type":"tool.finished","call_id":"c","status":"success","extra":{"kept":1}}"#
        );
    }
}
