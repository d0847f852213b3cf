//! An interaction has one answer: the first that is committed, also in races and across restarts.

use std::sync::Arc;

use runwire_model::Json;
use runwire_model::event::Decision;

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, run, to_run};
use crate::error::LogError;
use crate::interaction::{Answer, Answered};
use crate::{Cancel, Log, RunKey};

/// A form in the canonical dialect.
pub(super) fn asks(id: &str) -> String {
    format!(
        r#"{{"type":"interaction.requested","interaction_id":"{id}","kind":"form","title":"Who?","schema":{{"type":"object"}}}}"#
    )
}

fn expiring(id: &str, at: &str) -> String {
    asks(id).replace(r#""title""#, &format!(r#""expires_at":"{at}","title""#))
}

fn answer(id: &str, values: &str) -> Answer {
    let values = Json::parse(values).ok();
    Answer { interaction_id: id.into(), values, by: Some("ann".into()), ..Answer::default() }
}

async fn say(fixture: &Fixture<'_>, run_id: &str, answer: Answer) -> Result<Answered, LogError> {
    fixture.log.answer(&run(run_id), answer).await
}

/// A different answer is refused with the one that won.
pub async fn the_first_answer_wins_and_the_next_is_refused_with_it(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("q")])).await;
    let won = say(&fixture, "r", answer("q", r#"{"a":1}"#)).await.expect("the first");
    assert!(won.new && won.run.status.as_str() == "running");
    let another = say(&fixture, "r", answer("q", r#"{"a":2}"#)).await;
    let Err(LogError::InteractionClosed { answer: winner, .. }) = another else { panic!("{another:?}") };
    assert_eq!(*winner, won.answer);
    assert_eq!((winner.decision, winner.by.as_deref()), (Decision::Submitted, Some("ann")));
    assert_eq!(winner.values.as_ref().map(Json::text), Some(r#"{"a":1}"#));
    assert_eq!(fixture.types("r").await[3..], ["interaction.resolved", "run.resumed"]);
    let info = &fixture.info("r").await.summary.interactions[0];
    assert_eq!(info.status, "submitted");
}

/// Repeating an answer changes nothing, however its JSON is laid out; the same words of another person do not count.
pub async fn the_same_answer_of_the_same_person_succeeds_again(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("q")])).await;
    let first = say(&fixture, "r", answer("q", r#"{"a":1,"b":[2]}"#)).await.expect("the first");
    let fixture = fixture.reopen().await;
    for words in [r#"{"a":1,"b":[2]}"#, r#"{ "b": [2], "a": 1 }"#] {
        let again = say(&fixture, "r", answer("q", words)).await.expect("the same");
        assert!(!again.new);
        assert_eq!(again.answer, first.answer);
    }
    let same = answer("q", r#"{"a":1,"b":[2]}"#);
    for other in [
        Answer { by: Some("bob".into()), ..same.clone() },
        Answer { by: None, ..same.clone() },
        Answer { reason: Some("because".into()), ..same.clone() },
        Answer { decision: Decision::Cancelled, ..same.clone() },
        Answer { values: None, ..same },
    ] {
        let refused = say(&fixture, "r", other).await;
        assert!(matches!(refused, Err(LogError::InteractionClosed { .. })), "{refused:?}");
    }
    assert_eq!(fixture.records("r").await.len(), 3);
}

/// Of concurrent answers one wins, and the others are refused with it.
pub async fn of_many_who_answer_at_once_one_wins(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for round in 0..40 {
        let id = format!("r{round}");
        fixture.write(to_run(&id, &[STARTED, &asks("q")])).await;
        let mut racing = Vec::new();
        for person in 0..8 {
            let (log, key) = (fixture.log.clone(), run(&id));
            let answer =
                Answer { by: Some(person.to_string()), ..answer("q", &format!("{{\"n\":{person}}}")) };
            racing.push(tokio::spawn(async move { log.answer(&key, answer).await }));
        }
        let mut winners = Vec::new();
        let mut refusals = Vec::new();
        for answered in racing {
            match answered.await.expect("a task") {
                Ok(answered) => winners.push(answered.answer),
                Err(LogError::InteractionClosed { answer, .. }) => refusals.push(*answer),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((winners.len(), refusals.len()), (1, 7), "round {round}");
        assert!(refusals.iter().all(|answer| *answer == winners[0]));
        assert_eq!(fixture.types(&id).await[3..], ["interaction.resolved", "run.resumed"]);
    }
}

/// Only the answer to the last open interaction resumes the run.
pub async fn the_last_answer_resumes_the_run(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("a"), &asks("b")])).await;
    let fixture = fixture.reopen().await;
    assert_eq!(say(&fixture, "r", answer("b", "{}")).await.expect("b").run.status.as_str(), "suspended");
    let fixture = fixture.reopen().await;
    assert_eq!(say(&fixture, "r", answer("a", "{}")).await.expect("a").run.status.as_str(), "running");
    fixture.write(to_run("r", &[COMPLETED])).await;
    let types = fixture.types("r").await;
    assert_eq!(types[4..], ["interaction.resolved", "interaction.resolved", "run.resumed", "run.completed"]);
}

/// No reader sees the run between two answers that were given together.
pub async fn answers_that_are_given_together_are_one_record(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("a"), &asks("b"), &asks("c")])).await;
    let both = vec![answer("c", r#"{"n":3}"#), answer("a", r#"{"n":1}"#)];
    let answered = fixture.log.answer_all(&run("r"), both.clone()).await.expect("two answers");
    assert!(answered.iter().all(|answered| answered.new && answered.run.status.as_str() == "suspended"));
    let said: Vec<_> = answered.iter().filter_map(|answered| answered.answer.values.clone()).collect();
    assert_eq!(said.iter().map(Json::text).collect::<Vec<_>>(), [r#"{"n":3}"#, r#"{"n":1}"#]);
    let fixture = fixture.reopen().await;
    // An answer that was given before succeeds beside a new one.
    let rest = vec![both[0].clone(), answer("b", "{}")];
    let answered = fixture.log.answer_all(&run("r"), rest.clone()).await.expect("the rest");
    assert_eq!(answered.iter().map(|answered| answered.new).collect::<Vec<_>>(), [false, true]);
    assert_eq!(answered[1].run.status.as_str(), "running");
    let again = fixture.log.answer_all(&run("r"), rest).await.expect("the same");
    assert!(again.iter().all(|answered| !answered.new));
    let records = fixture.records("r").await;
    let counts: Vec<_> = records.iter().skip(4).map(|stored| stored.record.entries.len()).collect();
    assert_eq!(counts, [2, 2], "two answers; one, and the run goes on");
}

/// A refused answer refuses all that were given with it.
pub async fn of_answers_that_are_given_together_all_are_taken_or_none(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("a"), &asks("b"), &asks("c")])).await;
    say(&fixture, "r", answer("b", r#"{"n":1}"#)).await.expect("b");
    let before = fixture.records("r").await.len();
    let refused = async |answers: Vec<Answer>| {
        let refused = fixture.log.answer_all(&run("r"), answers).await.expect_err("a refusal");
        assert_eq!(fixture.records("r").await.len(), before);
        refused
    };
    let other = answer("b", r#"{"n":2}"#);
    let closed = refused(vec![answer("a", "{}"), other.clone(), answer("c", "{}")]).await;
    assert!(matches!(closed, LogError::InteractionClosed { interaction, .. } if interaction == "b"));
    let unknown = refused(vec![answer("a", "{}"), answer("x", "{}")]).await;
    assert!(matches!(unknown, LogError::InteractionUnknown { interaction, .. } if interaction == "x"));
}

/// A closed run takes no answer; the refusal has the answer of its interaction.
pub async fn a_closed_run_takes_no_answer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("q")])).await;
    let won = say(&fixture, "r", answer("q", "{}")).await.expect("the first").answer;
    fixture.write(to_run("r", &[COMPLETED])).await;
    fixture.write(to_run("c", &[STARTED, &asks("q")])).await;
    fixture.log.cancel(&run("c"), Cancel::default()).await.expect("the run");
    let fixture = fixture.reopen().await;
    let closed = |refused| match refused {
        Err(LogError::RunClosed { status, answer, .. }) => (status.as_str(), answer),
        other => panic!("{other:?}"),
    };
    assert_eq!(closed(say(&fixture, "r", answer("q", "{}")).await), ("completed", Some(Box::new(won))));
    assert_eq!(closed(say(&fixture, "r", answer("other", "{}")).await), ("completed", None));
    let (status, told) = closed(say(&fixture, "c", answer("q", "{}")).await);
    assert_eq!((status, told.map(|told| told.decision)), ("cancelled", Some(Decision::Cancelled)));
}

/// An interaction that a run has not requested takes no answer.
pub async fn an_unknown_interaction_takes_no_answer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("q")])).await;
    fixture.write(to_run("other", &[STARTED, &asks("theirs")])).await;
    fixture.create_run("pending", None).await;
    for (id, interaction) in [("r", "theirs"), ("r", ""), ("pending", "q")] {
        let refused = say(&fixture, id, answer(interaction, "{}")).await;
        assert!(matches!(refused, Err(LogError::InteractionUnknown { .. })), "{refused:?}");
    }
    assert_eq!(say(&fixture, "none", answer("q", "{}")).await, Err(LogError::RunUnknown("none".into())));
    let stranger = fixture.log.answer(&RunKey::new("stranger", "r"), answer("q", "{}")).await;
    assert_eq!(stranger, Err(LogError::RunUnknown("r".into())));
    assert_eq!((fixture.status("r").await, fixture.status("pending").await), ("suspended", "pending"));
}

/// An expired interaction takes no answer, also before the sweep.
pub async fn an_expired_interaction_takes_no_answer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &expiring("q", "2020-01-01T00:00:00Z"), &asks("open")])).await;
    let refused = say(&fixture, "r", answer("q", "{}")).await;
    let Err(LogError::InteractionClosed { answer: winner, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(winner.decision, Decision::Expired);
    assert_eq!(fixture.status("r").await, "suspended");
    assert!(say(&fixture, "r", answer("open", "{}")).await.is_ok_and(|answered| answered.new));
    assert_eq!(
        fixture.types("r").await[4..],
        ["interaction.resolved", "interaction.resolved", "run.resumed"]
    );
}

/// A concurrent cancel and answer: the run is cancelled or resumed, and the interaction resolved once.
pub async fn a_cancel_races_an_answer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for round in 0..40 {
        let id = format!("r{round}");
        fixture.write(to_run(&id, &[STARTED, &asks("q")])).await;
        let (log, key): (Arc<dyn Log>, _) = (fixture.log.clone(), run(&id));
        let cancelling = tokio::spawn(async move { log.cancel(&key, Cancel::default()).await });
        let answered = say(&fixture, &id, answer("q", "{}")).await;
        let cancelled = cancelling.await.expect("a task").expect("the run").run;
        let resolved =
            fixture.types(&id).await.iter().filter(|name| **name == "interaction.resolved").count();
        assert_eq!(resolved, 1);
        match answered {
            Ok(answered) => assert!(answered.new && cancelled.summary.cancel_requested),
            Err(LogError::RunClosed { answer: Some(told), .. }) => {
                assert_eq!((told.decision, cancelled.status.as_str()), (Decision::Cancelled, "cancelled"));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// An interaction is returned with its request, and its answer once it has one.
pub async fn an_interaction_is_returned_with_its_answer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, &asks("q"), &asks("q")])).await;
    let key = run("r");
    let asked = fixture.log.interaction(&key, "q").await.expect("the question");
    assert_eq!((asked.run_id.as_str(), asked.thread_id.as_str(), &asked.answer), ("r", "r", &None));
    assert_eq!(asked.question.schema.as_ref().map(Json::text), Some(r#"{"type":"object"}"#));
    let week = asked.expires_at.expect("a time").0 - asked.asked_at.0;
    assert_eq!(week, crate::limits::INTERACTION_MILLIS);
    // The guard has given the second one a name of its own.
    let won = say(&fixture, "r", answer("q.2", r#"{"x":"y"}"#)).await.expect("an answer").answer;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.log.interaction(&key, "q.2").await.expect("the question").answer, Some(won));
    assert_eq!(fixture.log.interaction(&key, "q").await.expect("the question"), asked);
    let unknown = fixture.log.interaction(&key, "q.3").await;
    assert!(matches!(unknown, Err(LogError::InteractionUnknown { .. })));
    assert!(matches!(fixture.log.interaction(&run("none"), "q").await, Err(LogError::RunUnknown(_))));
}
