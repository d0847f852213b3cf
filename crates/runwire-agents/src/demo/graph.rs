//! The script of `thought-graph`: compares two cities; a node fails, and the graph grows around it.

use runwire_model::Json;
use runwire_model::event::{Data, GotExpanded, GotNodeCompleted, GotNodeFailed, GotNodeStarted, GotPlanned};
use serde_json::json;

use super::cities::{CITIES, City, Day, Language, driest};
use super::script_writer::ScriptWriter;
use super::{ScriptEnding, Transition};

/// A city in the comparison.
struct Side {
    city: &'static City,
    best: Day,
    /// Minutes on the train and on the road.
    rail: i64,
    road: i64,
    cost: i64,
}

pub(super) fn opening(t: &mut ScriptWriter) -> Transition {
    let sides = sides(t);
    t.begin();
    t.begin_step("plan_graph");
    let (asked, [a, b]) = (t.quoted_message(), sides.each_ref().map(|side| side.city.name));
    let thought = t.words(
        format!("“{asked}”: I compare {} and {}. Weather and travel do not wait for each other.", a.en, b.en),
        format!("“{asked}”：比较{}和{}。天气和交通互不依赖，可以并行（parallel）。", a.zh, b.zh),
    );
    t.think("planning", &thought);
    let nodes = [&*weather(&sides[0]), &weather(&sides[1]), "travel", "costs", "verdict"];
    t.emit(GotPlanned {
        node_count: number(5),
        edge_count: number(4),
        node_ids: Some(Json::from_value(&json!(nodes))),
    });
    t.usage();
    t.end_step();
    Transition::scene(move |t| execute(t, &sides))
}

/// Finds two cities to compare, both near enough for one traveller.
fn sides(t: &mut ScriptWriter) -> [Side; 2] {
    let first = match City::named_in(&t.message) {
        Some(city) => city,
        None => &CITIES[t.rng.between(0, CITIES.len() as i64 - 1) as usize],
    };
    let near: Vec<&'static City> =
        CITIES.iter().filter(|city| city.asian == first.asian && city.id != first.id).collect();
    let second = near[t.rng.between(0, near.len() as i64 - 1) as usize];
    [first, second].map(|city| {
        let best = driest(&city.forecast(&mut t.rng));
        let rail = t.rng.between(9, 30) * 5;
        Side { city, best, rail, road: rail + t.rng.between(4, 12) * 5, cost: t.rng.between(18, 60) * 10 }
    })
}

fn execute(t: &mut ScriptWriter, sides: &[Side; 2]) -> Transition {
    t.begin_step("execute_graph");
    for node in [&*weather(&sides[0]), &weather(&sides[1]), "travel"] {
        start(t, node);
    }
    for side in sides {
        t.pause(900);
        let Day { label, sky, low, high, rain } = side.best;
        let summary = t.words(
            format!("{}: {}, {low}–{high} °C, rain {rain} %", label.en, sky.en),
            format!("{}：{}，{low}–{high} °C，降雨概率 {rain}%", label.zh, sky.zh),
        );
        complete(t, &weather(side), summary);
    }
    t.pause(700);
    let error = t.words("the timetable service did not answer within 3 s", "时刻表服务 3 秒内没有响应");
    t.emit(GotNodeFailed { node_id: "travel".into(), error });
    t.pause(600);
    t.emit(GotExpanded { node_id: "travel".into(), nodes_added: number(2), edges_added: number(3) });
    start(t, "travel.rail");
    start(t, "travel.road");
    let minutes =
        |of: fn(&Side) -> i64| sides.each_ref().map(|side| format!("{} {} min", side.city.name.en, of(side)));
    for (node, minutes) in
        [("travel.road", minutes(|side| side.road)), ("travel.rail", minutes(|side| side.rail))]
    {
        t.pause(800);
        complete(t, node, minutes.join(", "));
    }
    start(t, "costs");
    t.pause(700);
    let costs =
        sides.each_ref().map(|side| format!("{} {}{}", side.city.name.en, side.city.currency, side.cost));
    complete(t, "costs", costs.join(", "));
    start(t, "verdict");
    t.pause(600);
    let winner = t.words(winner(sides).city.name.en, winner(sides).city.name.zh);
    complete(t, "verdict", winner);
    t.usage();
    t.end_step();
    answer(t, sides)
}

fn answer(t: &mut ScriptWriter, sides: &[Side; 2]) -> Transition {
    t.begin_step("synthesize");
    let language = t.language;
    let rows = sides.each_ref().map(|side| {
        let cost = format!("{}{}", side.city.currency, side.cost);
        json!([
            side.city.name.in_language(language),
            side.best.label.in_language(language),
            side.best.rain,
            side.rail,
            cost
        ])
    });
    let columns = match language {
        Language::English => ["City", "Best day", "Rain %", "Train, min", "Costs"],
        Language::Chinese => ["城市", "最佳日期", "降雨 %", "火车（分钟）", "费用"],
    };
    let title = t.words("Comparison", "对比");
    t.emit(Data {
        data_type: "dataframe".into(),
        data: Json::from_value(&json!({"name": title, "columns": columns, "rows": rows})),
        ..Default::default()
    });
    let (best, day) = (winner(sides), winner(sides).best);
    let reply = t.words(
        format!(
            "**{}** is the better choice: {} it is {} with {} % chance of rain, and the train takes {} minutes.\n\n\
             The timetable service failed once; I looked at rail and road separately instead.",
            best.city.name.en, day.label.en.to_lowercase(), day.sky.en, day.rain, best.rail,
        ),
        format!(
            "更推荐**{}**：{}{}，降雨概率 {}%，坐火车 {} 分钟。\n\n时刻表服务失败过一次，我改为分别查询铁路和公路（graph expansion）。",
            best.city.name.zh, day.label.zh, day.sky.zh, day.rain, best.rail,
        ),
    );
    t.say(&reply);
    t.usage();
    t.end_step();
    Transition::End(ScriptEnding::Completed { reply })
}

/// Finds the drier side; of two that are as dry, the nearer.
fn winner(sides: &[Side; 2]) -> &Side {
    let [a, b] = sides;
    if (a.best.rain, a.rail) <= (b.best.rain, b.rail) { a } else { b }
}

fn weather(side: &Side) -> String {
    format!("weather.{}", side.city.id)
}

fn start(t: &mut ScriptWriter, node: &str) {
    t.emit(GotNodeStarted { node_id: node.to_owned() });
    t.pause(150);
}

fn complete(t: &mut ScriptWriter, node: &str, summary: String) {
    t.emit(GotNodeCompleted { node_id: node.to_owned(), result_summary: Some(summary) });
}

fn number(number: i64) -> Option<Json> {
    Some(Json::from_value(&json!(number)))
}
