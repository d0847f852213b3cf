//! The scene with two parallel tools, a retried error, a table and a chart.

use runwire_model::Json;
use runwire_model::event::{Data, ErrorInfo, Level, Notice, ToolArgsDelta, ToolArgsStarted};
use serde_json::json;

use super::super::cities::Language;
use super::super::script_writer::ScriptWriter;
use super::super::tool_call::ScriptToolCall;
use super::Trip;

pub(super) fn scene(t: &mut ScriptWriter, trip: &Trip) {
    t.begin_step("gather");
    let forecast = call_forecast(t, trip);
    let purpose = t.words("Looks for places to go", "查找可去的地方");
    let places =
        ScriptToolCall::call(t, "find_places", &json!({"city": trip.city.id, "limit": 3}), purpose.clone());
    forecast.start(t);
    places.start(t);
    t.pause(1000);
    let looking = t.words("asking two stations", "正在查询两个气象站");
    forecast.progress(t, 30, looking);
    t.pause(800);
    places.print(t, "GET /places … ".to_owned());
    t.pause(1000);
    forecast.print(t, "station 1: ok\n".to_owned());
    let merging = t.words("merging the models", "正在合并预报模型");
    forecast.progress(t, 70, merging);
    t.pause(1200);
    places.print(t, "504 Gateway Timeout\n".to_owned());
    let error = timeout(t);
    places.fail(t, error.clone(), 2000);
    warn(t, error);
    t.pause(800);
    forecast.print(t, "station 2: ok\n".to_owned());
    let days =
        trip.days.map(|day| json!({"sky": day.sky.en, "low": day.low, "high": day.high, "rain": day.rain}));
    let call_id = forecast.id.clone();
    forecast.succeed(t, &json!({"city": trip.city.id, "days": days}), 2400);
    show(t, trip, call_id);
    let again =
        ScriptToolCall::call(t, "find_places", &json!({"city": trip.city.id, "limit": 3, "try": 2}), purpose);
    again.start(t);
    t.pause(600);
    let ranking = t.words("ranking by weather", "按天气排序");
    again.progress(t, 60, ranking);
    t.pause(1200);
    let found = trip
        .city
        .places
        .map(|(name, roofed)| json!({"name": name.in_language(t.language), "roofed": roofed}));
    again.succeed(t, &json!({"places": found}), 900);
    t.patch(&json!([
        {"op": "replace", "path": "/stage", "value": "gathered"},
        {"op": "replace", "path": "/forecast", "value": {"best": trip.best.label.en, "rain": trip.best.rain}},
    ]));
    t.usage();
    t.end_step();
}

/// Calls the forecast with streamed arguments.
fn call_forecast(t: &mut ScriptWriter, trip: &Trip) -> ScriptToolCall {
    let call = ScriptToolCall { id: t.id("call"), name: "weather_forecast" };
    t.emit(ToolArgsStarted { call_id: call.id.clone(), name: Some(call.name.to_owned()), message_id: None });
    for delta in
        [format!("{{\"city\":\"{}\"", trip.city.id), ",\"days\":5,\"unit\":".into(), "\"celsius\"}".into()]
    {
        t.emit(ToolArgsDelta { call_id: call.id.clone(), delta });
        t.pause(120);
    }
    let purpose = t.words("Fetches the forecast", "查询天气预报");
    call.emit(t, &json!({"city": trip.city.id, "days": 5, "unit": "celsius"}), purpose);
    call
}

fn timeout(t: &ScriptWriter) -> ErrorInfo {
    ErrorInfo {
        code: Some("upstream_timeout".into()),
        kind: Some("timeout".into()),
        domain: Some("system".into()),
        message: t.words(
            "The places service did not answer within 2 s; trying once more.",
            "地点服务 2 秒内没有响应，正在重试（retry）。",
        ),
        retryable: Some(true),
        ..Default::default()
    }
}

/// Emits a warning for an error that does not fail the run.
fn warn(t: &mut ScriptWriter, error: ErrorInfo) {
    t.emit(Notice {
        level: Level::Error,
        domain: error.domain,
        code: error.code,
        kind: error.kind,
        message: error.message,
        retryable: error.retryable,
        fatal: Some(false),
        details: Some(Json::from_value(&json!({"attempt": 1, "of": 2}))),
    });
}

/// Shows the forecast as a table and as a chart.
fn show(t: &mut ScriptWriter, trip: &Trip, call_id: String) {
    let (language, city) = (t.language, trip.city.name.in_language(t.language));
    let columns = match language {
        Language::English => ["Day", "Sky", "Low °C", "High °C", "Rain %"],
        Language::Chinese => ["日期", "天气", "最低 °C", "最高 °C", "降雨 %"],
    };
    let rows = trip.days.map(|day| {
        json!([day.label.in_language(language), day.sky.in_language(language), day.low, day.high, day.rain])
    });
    let name = t.words(format!("Forecast for {city}"), format!("{city}天气预报"));
    let about = t.words("Five days, from two stations", "未来五天，综合两个气象站");
    t.emit(Data {
        data_type: "dataframe".into(),
        data: Json::from_value(&json!({"name": name, "columns": columns, "rows": rows})),
        metadata: Some(Json::from_value(&json!({"description": about}))),
        call_id: Some(call_id.clone()),
    });
    t.pause(800);
    let title = t.words(format!("High and low in {city}, °C"), format!("{city}最高与最低气温（°C）"));
    let (high, low) = (t.words("High", "最高"), t.words("Low", "最低"));
    t.emit(Data {
        data_type: "chart".into(),
        data: Json::from_value(&json!({
            "type": "line",
            "name": title,
            "labels": trip.days.map(|day| day.label.in_language(language)),
            "series": [
                {"name": high, "data": trip.days.map(|day| day.high)},
                {"name": low, "data": trip.days.map(|day| day.low)},
            ],
        })),
        call_id: Some(call_id),
        ..Default::default()
    });
    t.pause(800);
}
