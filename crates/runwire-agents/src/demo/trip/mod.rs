//! The script of `demo`: plans a day out, and shows everything that a run can show on the way.
//!
//! | scene | file | shows |
//! |---|---|---|
//! | understand, suggest | `mod.rs` | state, thinking, usage, markdown |
//! | gather | `gather.rs` | two tools in parallel, an error that is retried, a table, a chart |
//! | the form | `form.rs` | a JSON Schema with every kind of field, and what was filled in |
//! | the booking | `booking.rs` | an approval, and what each decision leads to |

mod booking;
mod form;
mod gather;

use runwire_model::event::{Decision, InteractionResolved};
use serde_json::json;

use super::cities::{CITIES, City, Day, Language, driest};
use super::script_writer::ScriptWriter;
use super::{ScriptEnding, Transition};
use form::Plan;

/// The data of the run.
struct Trip {
    city: &'static City,
    days: [Day; 5],
    best: Day,
    /// The price of a seat on the train.
    fare: i64,
}

impl Trip {
    /// Lists the places for the best day, those under a roof first where it may rain.
    fn places(&self, language: Language) -> Vec<String> {
        let wet = self.best.rain > 35;
        let mut places = self.city.places;
        places.sort_by_key(|(_, roofed)| *roofed != wet);
        places
            .map(|(name, roofed)| {
                format!("{} {}", if roofed { "🏛️" } else { "🌿" }, name.in_language(language))
            })
            .into()
    }
}

pub(super) fn opening(t: &mut ScriptWriter) -> Transition {
    let named = City::named_in(&t.message);
    let drawn = t.rng.between(0, CITIES.len() as i64 - 1) as usize;
    let city = named.unwrap_or(&CITIES[drawn]);
    let days = city.forecast(&mut t.rng);
    let trip = Trip { city, days, best: driest(&days), fare: t.rng.between(6, 24) * 5 };
    t.begin();
    t.snapshot(&json!({"stage": "understanding", "city": city.id, "forecast": null, "plan": null}));
    t.begin_step("understand");
    let asked = t.quoted_message();
    let (en, zh) = (city.name.en, city.name.zh);
    let place = match named {
        Some(_) => t.words(format!("It names {en}."), format!("消息里提到了{zh}。")),
        None => t.words(format!("It names no city, so I take {en}."), format!("没有说城市，就以{zh}为例。")),
    };
    let thought = t.words(
        format!("“{asked}” — {place} I need the forecast and places to go; neither waits for the other."),
        format!("“{asked}”——{place}需要天气预报（forecast）和可去的地方，两个工具可以并行调用。"),
    );
    t.think("reasoning", &thought);
    t.usage();
    t.end_step();
    Transition::scene(|t| {
        gather::scene(t, &trip);
        Transition::scene(|t| suggest(t, trip))
    })
}

fn suggest(t: &mut ScriptWriter, trip: Trip) -> Transition {
    t.begin_step("suggest");
    t.patch(&json!([{"op": "replace", "path": "/stage", "value": "asking"}]));
    let (city, today, best) = (trip.city.name, trip.days[0], trip.best);
    let places: String = trip.places(t.language).iter().map(|place| format!("- {place}\n")).collect();
    let said = t.words(
        format!(
            "## {}, the next days\n\n**Today**: {}, {}–{} °C, {} % chance of rain. The best day to go out: \
             **{}** ({}, {} %).\n\n{places}\nFill in the form and I plan the trip for you.",
            city.en, today.sky.en, today.low, today.high, today.rain, best.label.en, best.sky.en, best.rain,
        ),
        format!(
            "## {}未来几天的天气\n\n**今天**：{}，{}–{} °C，降雨概率 {}%。最适合出门的是**{}**（{}，{}%）。\n\n\
             {places}\n填一下表单（form），我来安排行程。",
            city.zh, today.sky.zh, today.low, today.high, today.rain, best.label.zh, best.sky.zh, best.rain,
        ),
    );
    t.say(&said);
    t.usage();
    t.end_step();
    form::ask(t, &trip);
    Transition::ask(form::ID, move |t, answer| filled_in(t, trip, answer))
}

fn filled_in(t: &mut ScriptWriter, trip: Trip, answer: &InteractionResolved) -> Transition {
    let why = match answer.decision {
        Decision::Submitted | Decision::Approved => {
            let plan = Plan::read(answer.values.as_ref());
            return Transition::scene(move |t| booking::ask(t, trip, plan));
        }
        Decision::Rejected | Decision::Cancelled => {
            t.words("The form was put aside, so I booked nothing.", "表单已取消，没有预订任何东西。")
        }
        Decision::Expired => t.words(
            "Nobody filled in the form in time, so I booked nothing.",
            "表单已过期（expired），没有预订。",
        ),
    };
    part(t, &trip, &why)
}

/// Ends a run in which nothing was booked.
fn part(t: &mut ScriptWriter, trip: &Trip, why: &str) -> Transition {
    let (city, best) = (trip.city.name, trip.best);
    let reply = t.words(
        format!(
            "{why}\n\nThe forecast stays good to know: **{}** is the day for {}, {} with {}–{} °C.\n\n\
             > 下次见！ *See you next time!*",
            best.label.en, city.en, best.sky.en, best.low, best.high,
        ),
        format!(
            "{why}\n\n天气信息仍然有用：去{}最好选**{}**，{}，{}–{} °C。\n\n> See you next time! 下次见！",
            city.zh, best.label.zh, best.sky.zh, best.low, best.high,
        ),
    );
    t.patch(&json!([{"op": "replace", "path": "/stage", "value": "done"}]));
    finish(t, reply)
}

/// Emits the final text and ends the run.
fn finish(t: &mut ScriptWriter, reply: String) -> Transition {
    t.begin_step("answer");
    t.say(&reply);
    t.usage();
    t.end_step();
    Transition::End(ScriptEnding::Completed { reply })
}
