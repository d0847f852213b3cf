//! Extreme values: the longest ids, the largest numbers and frames, unusual characters.

use runwire_model::Json;
use runwire_model::event::Body;

use super::Bed;
use super::answers::asks;
use super::fixture::{COMPLETED, Fixture, STARTED, TENANT, delta, run, stamped, thread, to_run, to_run_of};
use crate::error::LogError;
use crate::info::NewRun;
use crate::interaction::{Answer, InteractionQuery};
use crate::limits;
use crate::{ReadFormat, RetentionLimits};

/// Ids are text and nothing else: quotes, wildcards, every script, 256 bytes.
pub async fn ids_may_be_any_text(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let long = "线".repeat(85);
    let ids = [
        "'; DROP TABLE run; --",
        "\"q\"",
        "%_*?",
        "会话🚀",
        "a/b#c",
        " ",
        "A",
        "a",
        "e\u{301}",
        "\u{e9}",
        &long,
    ];
    for id in ids {
        fixture.write(stamped(to_run_of(&format!("t{id}"), id, &[STARTED, &delta(id)]), id, 0, 0)).await;
    }
    fixture = fixture.reopen().await;
    for id in ids {
        fixture.write(stamped(to_run(id, &[COMPLETED]), id, 0, 2)).await;
        let info = fixture.info(id).await;
        assert_eq!((info.run_id.as_str(), info.thread_id, info.last_seq), (id, format!("t{id}"), 3));
        assert_eq!(fixture.log.producer(&run(id), id).await.expect("the run").expect("it").next, 3);
        // In a cluster the store may be looked at as soon as there is a tail.
        let head = fixture.log.tail(&thread(&format!("t{id}"))).head().seq;
        assert!([0, 3].contains(&head), "{head}");
    }
}

/// Texts may contain NUL, which not every store can hold.
pub async fn a_nul_in_a_text_is_kept(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let message = Some("before\0after".to_owned());
    let new = NewRun { tenant: TENANT.into(), run_id: Some("r".into()), message, ..NewRun::default() };
    fixture.log.create_run(new).await.expect("the run");
    fixture.write(to_run("r", &[STARTED, &asks("q\\u0000\\u00010"), &delta("a\\u0000b")])).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.info("r").await.summary.message.as_deref(), Some("before\0after"));
    let title = fixture.log.thread(&thread("r")).await.expect("the thread").title;
    assert_eq!(title.as_deref(), Some("before\0after"));
    let query = InteractionQuery { tenant: TENANT.into(), limit: 10, ..InteractionQuery::default() };
    let open = fixture.log.interactions(query.clone()).await.expect("the inbox").interactions;
    let interaction_id = open[0].question.interaction_id.clone();
    assert_eq!(interaction_id, "q\0\u{1}0");
    let answer = Answer { interaction_id, ..Answer::default() };
    fixture.log.answer(&run("r"), answer).await.expect("an answer");
    assert!(fixture.log.interactions(query).await.expect("the inbox").interactions.is_empty());
}

/// No number that a caller may send is too large for the store.
pub async fn the_largest_numbers_do_not_fail_the_store(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(stamped(to_run("r", &[STARTED]), "p", u64::MAX, 0)).await;
    let fixture = fixture.reopen().await;
    let told = fixture.log.producer(&run("r"), "p").await.expect("the run").expect("the producer");
    assert_eq!((told.epoch, told.next), (u64::MAX, 1));
    let zombie = fixture.refused(stamped(to_run("r", &[STARTED]), "p", u64::MAX - 1, 1)).await;
    assert_eq!(zombie, LogError::ProducerFenced { epoch: u64::MAX });
    let gap = fixture.refused(stamped(to_run("r", &[STARTED]), "p", u64::MAX, u64::MAX)).await;
    assert_eq!(gap, LogError::ProducerGap { expected: 1, got: u64::MAX });
    fixture.write(stamped(to_run("r", &[delta("a")]), "p", u64::MAX, 1)).await;
    let beyond = fixture.log.read(&thread("r"), u64::MAX).await.map(|_| ());
    assert_eq!(beyond, Err(LogError::CursorBeyondEnd { after: u64::MAX, head: 2 }));
    fixture.log.before(&thread("r"), u64::MAX).await.expect("the thread");
    let form = ReadFormat::new(runwire_model::dialect::Dialect::Agio);
    assert_eq!(fixture.log.checkpoint(&run("r"), form, u64::MAX).await, Ok(None));
    let everything = RetentionLimits {
        ended_before: Some(runwire_model::Timestamp(u64::MAX)),
        max_bytes: Some(u64::MAX),
        age: Some(std::time::Duration::MAX),
    };
    assert_eq!(fixture.log.trim(everything).await, Ok(0));
    let usage = format!(
        r#"{{"type":"usage","prompt_tokens":{0},"completion_tokens":{0},"total_tokens":{0}}}"#,
        u64::MAX
    );
    fixture.write(to_run("r", &[&usage, &usage])).await;
    assert_eq!(fixture.info("r").await.summary.total_tokens, u64::MAX);
    fixture.log.ready().await.expect("the store works");
}

/// The largest frame that may come is kept whole, and found.
pub async fn a_frame_of_a_mebibyte_is_kept(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let room = runwire_model::limits::FRAME_BYTES - delta("").len();
    let largest = delta(&"x".repeat(room));
    assert_eq!(largest.len(), runwire_model::limits::FRAME_BYTES);
    let appended = fixture.write(to_run("r", &[STARTED, &largest, &largest, &delta("end")])).await;
    assert_eq!(appended.last_seq, 4);
    let fixture = fixture.reopen().await;
    let records = fixture.records("r").await;
    assert_eq!(records[1].frame.as_deref(), Some(largest.as_bytes()));
    let larger = delta(&"x".repeat(room + 1));
    let fault = fixture.log.append(to_run("r", &[larger])).await.expect("an answer").fault.expect("a fault");
    assert_eq!(fault.index, 0);
    // What the server adds may be as large as what created the run.
    let input = Json::string(&"y".repeat(4 * limits::TAIL_BYTES));
    let new =
        NewRun { tenant: TENANT.into(), run_id: Some("s".into()), input: Some(input), ..NewRun::default() };
    fixture.log.create_run(new).await.expect("the run");
    let tail = fixture.log.tail(&thread("s"));
    fixture.log.cancel(&run("s"), Default::default()).await.expect("the run");
    let weight = fixture.records("s").await[0].weight();
    assert!(weight > 4 * limits::TAIL_BYTES && tail.head().seq == 1);
}

/// An id that has no room for a number is given one all the same, and is read back.
pub async fn an_id_of_512_bytes_may_be_used_twice(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let id = "i".repeat(512);
    let piece = format!(r#"{{"type":"text.delta","message_id":"{id}","content":"x"}}"#);
    let finished = format!(r#"{{"type":"text.finished","message_id":"{id}"}}"#);
    fixture.write(to_run("r", &[&piece, &finished, &piece])).await;
    let fixture = fixture.reopen().await;
    fixture.write(to_run("r", &[&piece, COMPLETED])).await;
    let records = fixture.records("r").await;
    let ids = records.iter().flat_map(|record| &record.record.entries).filter_map(|entry| {
        match &entry.event.body {
            Body::TextDelta(delta) => Some(delta.message_id.clone()),
            _ => None,
        }
    });
    let ids: Vec<String> = ids.collect();
    assert_eq!(ids, [id.clone(), format!("{id}#2"), format!("{id}#2")]);
}

/// What is stored as JSON reads back digit by digit.
pub async fn numbers_keep_their_digits(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let input = r#"{"big":123456789012345678901234567890,"exact":0.10}"#;
    let new = NewRun {
        tenant: TENANT.into(),
        run_id: Some("r".into()),
        input: Json::parse(input).ok(),
        ..NewRun::default()
    };
    fixture.log.create_run(new).await.expect("the run");
    let fixture = fixture.reopen().await;
    fixture.write(to_run("r", &[STARTED, r#"{"type":"data","data_type":"n","data":[1e400,1.0]}"#])).await;
    let fixture = fixture.reopen().await;
    let records = fixture.records("r").await;
    let Body::RunStarted(started) = &records[0].record.entries[0].event.body else { panic!("a start") };
    assert_eq!(started.input.as_ref().map(Json::text), Some(input));
    let Body::Data(data) = &records[1].record.entries[0].event.body else { panic!("data") };
    assert_eq!(data.data.text(), "[1e400,1.0]");
}
