//! The form of the `demo` agent, and its parsed answer.

use runwire_model::Json;
use runwire_model::event::{InteractionKind, InteractionRequested};
use serde_json::{Value, json};

use super::super::cities::quoted;
use super::super::script_writer::ScriptWriter;
use super::Trip;

/// The form's id.
pub(super) const ID: &str = "trip";

/// Asks for what the plan needs.
pub(super) fn ask(t: &mut ScriptWriter, trip: &Trip) {
    let title = t.words("Plan the trip", "安排行程");
    let city = trip.city.name;
    let description = t.words(
        format!("A few details for a day in {}. Only the name and the e-mail address are needed.", city.en),
        format!("填写{}之行的几项信息，只有姓名和邮箱（e-mail）必填。", city.zh),
    );
    let ui = json!({
        "submit_text": t.words("Plan it", "开始安排"),
        "cancel_text": t.words("Not now", "暂不安排"),
    });
    t.emit(InteractionRequested {
        interaction_id: ID.to_owned(),
        kind: InteractionKind::Form,
        title: Some(title),
        description: Some(description),
        schema: Some(Json::from_value(&schema(t, trip))),
        ui: Some(Json::from_value(&ui)),
        ..Default::default()
    });
}

fn schema(t: &ScriptWriter, trip: &Trip) -> Value {
    let currency = trip.city.currency;
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["name", "email"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string", "minLength": 1, "maxLength": 60,
                "title": t.words("Name", "姓名"),
                "description": t.words("Whose name the booking is in", "预订人的姓名"),
            },
            "email": {
                "type": "string", "format": "email", "maxLength": 200,
                "title": t.words("E-mail", "邮箱"),
                "description": t.words("Where the tickets go", "用于接收车票"),
            },
            "departure": {
                "type": "string", "format": "date",
                "title": t.words("Departure", "出发日期"),
                "description": t.words("Leave it out for the best day", "不填则选天气最好的一天"),
            },
            "travellers": {
                "type": "integer", "minimum": 1, "maximum": 9, "default": 2,
                "title": t.words("Travellers", "人数"),
            },
            "budget": {
                "type": "number", "minimum": 0, "default": trip.fare * 8,
                "title": t.words(format!("Budget ({currency})"), format!("预算（{currency}）")),
                "description": t.words("For all travellers together", "所有人合计"),
            },
            "transport": {
                "type": "string", "default": "train",
                "oneOf": [
                    TravelMode::Train.choice(t),
                    TravelMode::Plane.choice(t),
                    TravelMode::Car.choice(t),
                ],
                "title": t.words("Transport", "交通方式"),
            },
            "interests": {
                "type": "array", "uniqueItems": true, "maxItems": 3, "default": ["food"],
                "items": {
                    "type": "string",
                    "oneOf": INTERESTS.map(|(value, _)| choice(value, interest(t, value))),
                },
                "title": t.words("Interests", "兴趣"),
                "description": t.words("At most three", "最多选三项"),
            },
            "insurance": {
                "type": "boolean", "default": false,
                "title": t.words("Travel insurance", "旅行保险"),
            },
            "hotel": {
                "type": "object", "additionalProperties": false,
                "title": t.words("Hotel", "酒店"),
                "default": {"nights": 1, "breakfast": true},
                "properties": {
                    "nights": {
                        "type": "integer", "minimum": 0, "maximum": 7, "default": 1,
                        "title": t.words("Nights", "几晚"),
                    },
                    "breakfast": {
                        "type": "boolean", "default": true,
                        "title": t.words("With breakfast", "含早餐"),
                    },
                },
            },
        },
    })
}

/// Interests, with their Chinese names.
const INTERESTS: [(&str, &str); 4] =
    [("food", "美食"), ("nature", "自然"), ("museums", "博物馆"), ("shopping", "购物")];

/// Returns the label of an interest.
pub(super) fn interest(t: &ScriptWriter, value: &str) -> String {
    let known = INTERESTS.iter().find(|(interest, _)| *interest == value);
    t.words(value, known.map_or(value, |(_, chinese)| chinese))
}

/// A value to choose, and the words for it.
fn choice(value: &str, title: String) -> Value {
    json!({"const": value, "title": title})
}

/// How to travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TravelMode {
    Train,
    Plane,
    Car,
}

impl TravelMode {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Plane => "plane",
            Self::Car => "car",
        }
    }

    /// Returns its label.
    pub(super) fn name(self, t: &ScriptWriter) -> String {
        match self {
            Self::Train => t.words("train", "火车"),
            Self::Plane => t.words("plane", "飞机"),
            Self::Car => t.words("car", "自驾"),
        }
    }

    fn choice(self, t: &ScriptWriter) -> Value {
        choice(self.word(), self.name(t))
    }
}

/// The answered values, with the form's defaults for missing ones.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) departure: Option<String>,
    pub(super) travellers: i64,
    pub(super) budget: Option<f64>,
    pub(super) transport: TravelMode,
    pub(super) interests: Vec<String>,
    pub(super) insured: bool,
    pub(super) nights: i64,
    pub(super) breakfast: bool,
}

impl Plan {
    /// Parses the values, which were validated before; invalid ones become defaults.
    pub(super) fn read(values: Option<&Json>) -> Self {
        let values = values.and_then(|values| values.to_value().ok()).unwrap_or_default();
        let text = |pointer: &str| {
            let text = values.pointer(pointer).and_then(Value::as_str).map(|text| quoted(text, 60));
            text.filter(|text| !text.is_empty())
        };
        let number = |pointer: &str, min: i64, max: i64, default: i64| {
            // A schema's integer may be written 2.0.
            let number = values.pointer(pointer).and_then(Value::as_f64);
            number.map_or(default, |number| number.clamp(min as f64, max as f64) as i64)
        };
        let yes = |pointer: &str, default: bool| {
            values.pointer(pointer).and_then(Value::as_bool).unwrap_or(default)
        };
        let interests = values.get("interests").and_then(Value::as_array).map(|interests| {
            let words = interests.iter().filter_map(Value::as_str).take(3);
            words.map(|word| quoted(word, 20)).collect()
        });
        Self {
            name: text("/name").unwrap_or_else(|| "traveller".to_owned()),
            email: text("/email").unwrap_or_else(|| "traveller@example.com".to_owned()),
            departure: text("/departure"),
            travellers: number("/travellers", 1, 9, 2),
            budget: values.pointer("/budget").and_then(Value::as_f64),
            transport: match text("/transport").as_deref() {
                Some("plane") => TravelMode::Plane,
                Some("car") => TravelMode::Car,
                _ => TravelMode::Train,
            },
            interests: interests.unwrap_or_else(|| vec!["food".to_owned()]),
            insured: yes("/insurance", false),
            nights: number("/hotel/nights", 0, 7, 1),
            breakfast: yes("/hotel/breakfast", true),
        }
    }
}
