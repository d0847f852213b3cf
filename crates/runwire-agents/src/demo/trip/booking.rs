//! The scenes of the plan, its price, the approval, and each decision.

use runwire_model::Json;
use runwire_model::event::{Decision, ErrorInfo, InteractionKind, InteractionRequested, InteractionResolved};
use serde_json::json;

use super::super::Transition;
use super::super::cities::quoted;
use super::super::script_writer::ScriptWriter;
use super::super::tool_call::ScriptToolCall;
use super::form::{Plan, TravelMode, interest};
use super::{Trip, finish, part};

/// The approval's id.
const ID: &str = "booking";

/// What the trip costs, item by item.
struct Price {
    travel: i64,
    hotel: i64,
    insurance: i64,
}

impl Price {
    fn of(trip: &Trip, plan: &Plan) -> Self {
        let travel = match plan.transport {
            TravelMode::Train => trip.fare * plan.travellers,
            TravelMode::Plane => trip.fare * 2 * plan.travellers,
            TravelMode::Car => trip.fare * 3,
        };
        let night = trip.fare + if plan.breakfast { 12 * plan.travellers } else { 0 };
        Self {
            travel,
            hotel: night * plan.nights,
            insurance: if plan.insured { 6 * plan.travellers } else { 0 },
        }
    }

    fn total(&self) -> i64 {
        self.travel + self.hotel + self.insurance
    }
}

/// Makes a plan of what was filled in, and asks whether to book it.
pub(super) fn ask(t: &mut ScriptWriter, trip: Trip, mut plan: Plan) -> Transition {
    t.begin_step("plan");
    let (currency, wanted) = (trip.city.currency, Price::of(&trip, &plan).total());
    let budget = plan.budget;
    let beyond = |total: i64| budget.is_some_and(|budget| total as f64 > budget);
    let dropped = beyond(wanted) && plan.nights > 0;
    if dropped {
        plan.nights = 0;
    }
    let price = Price::of(&trip, &plan);
    let total = price.total();
    let mut thought = t.words(
        format!("{} by {}, {currency}{wanted} in all.", people(plan.travellers), plan.transport.word()),
        format!("{} 人，{}出行，合计 {currency}{wanted}。", plan.travellers, plan.transport.name(t)),
    );
    if dropped {
        thought += &t.words(
            format!(" That is more than the budget, so I leave out the hotel: {currency}{total}."),
            format!("超出预算（over budget），去掉酒店后为 {currency}{total}。"),
        );
    }
    if beyond(total) {
        thought +=
            &t.words(" It stays over the budget; I say so and ask.", "仍然超出预算，需要说明并请你确认。");
    }
    t.think("analyzing", &thought);
    let day = plan.departure.clone().unwrap_or_else(|| trip.best.label.in_language(t.language).to_owned());
    t.patch(&json!([
        {"op": "replace", "path": "/stage", "value": "planned"},
        {"op": "replace", "path": "/plan", "value": {
            "transport": plan.transport.word(), "travellers": plan.travellers, "nights": plan.nights, "total": total,
        }},
    ]));
    t.usage();
    t.end_step();
    let arguments = json!({
        "city": trip.city.id, "day": day, "name": plan.name, "email": plan.email,
        "transport": plan.transport.word(), "travellers": plan.travellers, "nights": plan.nights,
        "total": total, "currency": currency,
    });
    t.begin_step("book");
    let purpose = t.words("Books and pays for the trip", "预订并支付行程");
    let call = ScriptToolCall::call(t, "book_trip", &arguments, purpose);
    let title = t.words("Book this trip?", "确认预订？");
    let reason = match beyond(total) {
        true => t.words("This spends money, and more than the budget.", "此操作会产生费用，并且超出预算。"),
        false => t.words("This spends money.", "此操作会产生费用。"),
    };
    t.emit(InteractionRequested {
        interaction_id: ID.to_owned(),
        kind: InteractionKind::Approval,
        title: Some(title),
        call_id: Some(call.id.clone()),
        name: Some(call.name.to_owned()),
        arguments: Some(Json::from_value(&arguments)),
        reason: Some(reason),
        ..Default::default()
    });
    let booking = Booking { plan, price, day, dropped, call };
    Transition::ask(ID, move |t, answer| decided(t, trip, booking, answer))
}

/// A booking that waits for its approval.
struct Booking {
    plan: Plan,
    price: Price,
    day: String,
    /// Whether the hotel was left out to keep within the budget.
    dropped: bool,
    call: ScriptToolCall,
}

fn decided(t: &mut ScriptWriter, trip: Trip, booking: Booking, answer: &InteractionResolved) -> Transition {
    let code = match answer.decision {
        Decision::Approved => return book(t, &trip, booking),
        // Any other decision is no permission to spend money.
        Decision::Submitted | Decision::Rejected => "rejected",
        Decision::Cancelled => "cancelled",
        Decision::Expired => "expired",
    };
    let reason =
        answer.reason.as_deref().map(|reason| quoted(reason, 80)).filter(|reason| !reason.is_empty());
    let why = match code {
        "rejected" => t.words("You did not approve the booking", "你没有批准这次预订"),
        "cancelled" => t.words("The booking was called off", "预订已被取消"),
        _ => t.words("Nobody approved the booking in time", "审批超时"),
    };
    let why = match reason {
        Some(reason) => t.words(format!("{why} (“{reason}”)."), format!("{why}（“{reason}”）。")),
        None => t.words(format!("{why}."), format!("{why}。")),
    };
    booking.call.fail(t, ErrorInfo::coded(code, why.clone()), 0);
    t.end_step();
    part(t, &trip, &why)
}

fn book(t: &mut ScriptWriter, trip: &Trip, booking: Booking) -> Transition {
    let Booking { plan, price, day, dropped, call } = booking;
    call.start(t);
    for (percent, en, zh) in
        [(25, "reserving seats", "锁定座位"), (60, "paying", "支付中"), (90, "sending tickets", "发送车票")]
    {
        let message = t.words(en, zh);
        call.progress(t, percent, message);
        t.pause(900);
    }
    let reference = format!("RW-{:05}", t.rng.between(10_000, 99_999));
    call.print(t, format!("confirmed {reference}\n"));
    call.succeed(t, &json!({"reference": reference, "total": price.total()}), 1900);
    t.patch(&json!([
        {"op": "replace", "path": "/stage", "value": "done"},
        {"op": "add", "path": "/reference", "value": reference},
    ]));
    t.end_step();
    let reply = confirmation(t, trip, &plan, &price, &day, dropped, &reference);
    finish(t, reply)
}

fn confirmation(
    t: &ScriptWriter,
    trip: &Trip,
    plan: &Plan,
    price: &Price,
    day: &str,
    dropped: bool,
    reference: &str,
) -> String {
    let (currency, total) = (trip.city.currency, price.total());
    let items = [
        (plan.transport.name(t), price.travel),
        (t.words(format!("hotel × {}", plan.nights), format!("酒店 × {}", plan.nights)), price.hotel),
        (t.words("insurance", "保险"), price.insurance),
    ];
    let rows: String = items
        .iter()
        .filter(|(_, cost)| *cost > 0)
        .map(|(item, cost)| format!("| {item} | {currency}{cost} |\n"))
        .collect();
    let places: String = trip.places(t.language).iter().map(|place| format!("1. {place}\n")).collect();
    let note = match dropped {
        true => t.words(
            "\nThe hotel is left out to keep within your budget.\n",
            "\n为了不超预算，没有预订酒店。\n",
        ),
        false => String::new(),
    };
    let interests = plan.interests.iter().map(|value| interest(t, value)).collect::<Vec<_>>();
    let interests = interests.join(&t.words(", ", "、"));
    let (city, email, name) = (trip.city.name, &plan.email, &plan.name);
    t.words(
        format!(
            "### Booked: {}, {day}\n\nDone, **{name}**. The reference is `{reference}`, and the tickets go to \
             {email}.\n\n| item | price |\n|---|---:|\n{rows}| **total** | **{currency}{total}** |\n{note}\n\
             {places}\nYour interests: {interests}.\n\n> 祝你旅途愉快！ *Have a good trip!*",
            city.en,
        ),
        format!(
            "### 已预订：{}，{day}\n\n**{name}**，预订完成。预订号（reference）是 `{reference}`，车票会发到 {email}。\n\n\
             | 项目 | 价格 |\n|---|---:|\n{rows}| **合计** | **{currency}{total}** |\n{note}\n{places}\n\
             你的兴趣：{interests}。\n\n> Have a good trip! 祝旅途愉快！",
            city.zh,
        ),
    )
}

fn people(count: i64) -> String {
    if count == 1 { "One traveller".to_owned() } else { format!("{count} travellers") }
}
