//! Answering interactions over HTTP and the WebSocket, in every dialect that has them.

use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{Answer, COMPLETED, Served, within_timeout};

const FORM: &str = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","title":"Who?","schema":{"type":"object","required":["email"],"additionalProperties":false,"properties":{"email":{"type":"string","format":"email"},"age":{"type":"integer","minimum":18}}}}"#;
const APPROVAL: &str = r#"{"type":"interaction.requested","interaction_id":"a","kind":"approval","name":"pay","arguments":{"sum":12345678901234567890}}"#;

async fn ask(served: &Served, run: &str, frame: &str) {
    let body = format!("{{\"type\":\"run.started\"}}\n{frame}\n");
    served.post(&format!("/v1/runs/{run}/events?dialect=runwire"), &body).await.written(2, 0);
}

async fn say(served: &Served, run: &str, interaction: &str, body: &Value) -> Answer {
    served.post(&format!("/v1/runs/{run}/interactions/{interaction}"), &body.to_string()).await
}

async fn types(served: &Served, run: &str) -> Vec<String> {
    let page = served
        .send(
            served
                .request(
                    http::Method::GET,
                    &format!("/v1/runs/{run}/events?limit=1000"),
                    &[("accept", "application/json")],
                )
                .body("")
                .unwrap(),
        )
        .await
        .json();
    let frames = page["frames"].as_array().unwrap().clone();
    frames.iter().map(|frame| frame["frame"]["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_answer_that_won_is_told_with_the_digits_that_it_was_given_with() {
    let served = Served::start().await;
    let form =
        r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{"type":"object"}}"#;
    ask(&served, "r", form).await;
    let path = "/v1/runs/r/interactions/q";
    let values = r#"{"price": 1.10,"id":12345678901234567890123}"#;
    let won = format!(r#"{{"decision":"submitted","values":{values}}}"#);
    assert_eq!(served.post(path, &won).await.status, StatusCode::OK);
    let late = r#"{"decision":"submitted","values":{}}"#;
    let answers = |refused: &Answer| refused.text.contains(&format!(r#""values":{values}"#));
    let refused = served.post(path, late).await;
    refused.problem(409, "interaction_closed");
    assert!(answers(&refused), "{refused:?}");
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    let refused = served.post(path, late).await;
    refused.problem(409, "run_closed");
    assert!(answers(&refused), "{refused:?}");
}

#[tokio::test]
async fn the_first_valid_answer_wins_and_the_next_caller_gets_it() {
    let served = Served::start().await;
    ask(&served, "r", FORM).await;
    let won = json!({"decision": "submitted", "values": {"email": "a@b.cn"}, "reason": "mine"});
    let first = say(&served, "r", "q", &won).await;
    assert_eq!(first.status, StatusCode::OK, "{first:?}");
    let told = first.json();
    assert_eq!((&told["status"], &told["answer"]["values"]), (&json!("submitted"), &won["values"]));
    assert_eq!(
        (&told["title"], &told["run_id"], told.get("answer_with")),
        (&json!("Who?"), &json!("r"), None)
    );
    // The same again is told as it is.
    assert_eq!(say(&served, "r", "q", &won).await.json(), told);
    let late = json!({"decision": "submitted", "values": {"email": "late@b.cn"}});
    let refused = say(&served, "r", "q", &late).await.problem(409, "interaction_closed");
    assert_eq!(refused["answer"], told["answer"]);
    // What is settled is not checked any more: the winner is what the caller needs to know.
    let invalid = json!({"decision": "submitted", "values": {}});
    assert_eq!(
        say(&served, "r", "q", &invalid).await.problem(409, "interaction_closed")["answer"],
        told["answer"]
    );
    assert_eq!(types(&served, "r").await[3..], ["interaction.resolved", "run.resumed"]);
    served.post("/v1/runs/r/events", COMPLETED).await.written(1, 0);
    assert_eq!(say(&served, "r", "q", &won).await.problem(409, "run_closed")["answer"], told["answer"]);
    assert_eq!(say(&served, "r", "other", &won).await.problem(409, "run_closed").get("answer"), None);
}

#[tokio::test]
async fn an_invalid_answer_changes_nothing_and_says_what_is_wrong() {
    let served = Served::start().await;
    ask(&served, "r", FORM).await;
    let values = json!({"email": "nobody", "age": 3, "extra": true});
    let refused = say(&served, "r", "q", &json!({"decision": "submitted", "values": values})).await;
    let problem = refused.problem(422, "invalid_answer");
    let mut pointers: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wrong| wrong["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/age", "/email", "/extra"]);
    for (body, field) in [
        (json!({}), "decision"),
        (json!({"decision": "approved"}), "decision"),
        (json!({"decision": "expired"}), "decision"),
        (json!({"decision": "yes"}), "decision"),
        (json!({"decision": "submitted"}), "values"),
        (json!({"decision": "cancelled", "values": {}}), "values"),
    ] {
        assert_eq!(
            say(&served, "r", "q", &body).await.problem(422, "invalid_answer")["field"],
            field,
            "{body}"
        );
    }
    say(&served, "r", "q", &json!({"decision": "submitted", "valeus": {}})).await.problem(400, "bad_body");
    let huge = json!({"decision": "submitted", "values": {"email": "x".repeat(300_000)}});
    assert_eq!(say(&served, "r", "q", &huge).await.problem(422, "too_large")["field"], "values");
    assert_eq!(types(&served, "r").await.len(), 3);
    say(&served, "none", "q", &json!({"decision": "cancelled"})).await.problem(404, "run_unknown");
    let unknown = say(&served, "r", "p%2Fq", &json!({"decision": "cancelled"})).await;
    assert_eq!(unknown.problem(404, "interaction_unknown")["interaction_id"], "p/q");
    // Withdrawing it is always possible.
    let withdrawn = say(&served, "r", "q", &json!({"decision": "cancelled", "reason": "no"})).await.json();
    assert_eq!(withdrawn["status"], "cancelled");
}

#[tokio::test]
async fn a_number_that_cannot_be_checked_is_refused_with_its_pointer_through_every_channel() {
    let served = Served::with(|config| config.agents = runwire_agents::demos(true)).await;
    // Nothing is wrong with any value here, nor with null.
    let question = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{}}"#;
    let body = format!("{{\"type\":\"run.started\"}}\n{question}\n");
    served.post("/v1/runs/r/events?dialect=runwire&thread=t", &body).await.written(2, 0);
    let values = r#"{"a":[1,{"b/c":1e999}]}"#;
    for (path, body) in [
        ("/v1/runs/r/interactions/q", format!(r#"{{"decision":"submitted","values":{values}}}"#)),
        ("/api/v1/bot/form", format!(r#"{{"conversation_id":"t","form_id":"q","values":{values}}}"#)),
        (
            "/ag-ui/demo",
            format!(
                r#"{{"threadId":"t","runId":"r2","messages":[],"resume":[{{"interruptId":"q","status":"resolved","payload":{values}}}]}}"#
            ),
        ),
    ] {
        let problem = served.post(path, &body).await.problem(422, "invalid_answer");
        assert_eq!(problem["errors"][0]["pointer"], "/a/1/b~1c", "{path}");
    }
    let (mut socket, _) =
        within_timeout(tokio_tungstenite::connect_async(format!("ws://{}/v1/ws", served.address)))
            .await
            .unwrap();
    let message = format!(
        r#"{{"op":"answer","id":1,"run":"r","interaction":"q","decision":"submitted","values":{values}}}"#
    );
    socket.send(Message::text(message)).await.unwrap();
    let told: Value =
        serde_json::from_str(within_timeout(socket.next()).await.unwrap().unwrap().to_text().unwrap())
            .unwrap();
    assert_eq!((&told["code"], &told["status"]), (&json!("invalid_answer"), &json!(422)), "{told}");
    assert_eq!(told["errors"][0]["pointer"], "/a/1/b~1c");
    assert_eq!(types(&served, "r").await.len(), 3, "nothing has changed");
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "suspended");
    // The largest number that can be checked is fine, and keeps its digits.
    let fine =
        served.post("/v1/runs/r/interactions/q", r#"{"decision":"submitted","values":1.70e308}"#).await;
    assert!(fine.text.contains("1.70e308"), "{fine:?}");
}

#[tokio::test]
async fn an_approval_is_decided_and_may_carry_values() {
    let served = Served::start().await;
    for (run, decision) in [("yes", "approved"), ("no", "rejected")] {
        ask(&served, run, APPROVAL).await;
        let said = json!({"decision": "submitted", "values": {"approved": true}});
        let refused = say(&served, run, "a", &said).await.problem(422, "invalid_answer");
        assert_eq!(refused["expected"], json!(["approved", "rejected", "cancelled"]));
        let told = say(&served, run, "a", &json!({"decision": decision, "reason": "so"})).await;
        assert_eq!(told.json()["status"], decision);
        // Numbers keep their digits.
        assert!(told.text.contains("12345678901234567890"));
    }
    let schema = r#"{"type":"object","required":["approved","note"],"properties":{"approved":{"type":"boolean"},"note":{"type":"string"}}}"#;
    ask(&served, "form", &APPROVAL.replace("\"name\"", &format!("\"schema\":{schema},\"name\""))).await;
    let opposite = json!({"decision": "approved", "values": {"approved": false, "note": ""}});
    let refused = say(&served, "form", "a", &opposite).await.problem(422, "invalid_answer");
    assert_eq!(refused["errors"][0]["pointer"], "/approved");
    let without = say(&served, "form", "a", &json!({"decision": "rejected", "values": {"x": 1}})).await;
    assert_eq!(without.problem(422, "invalid_answer")["errors"][0]["pointer"], "/note");
    let told =
        say(&served, "form", "a", &json!({"decision": "approved", "values": {"note": "ok"}})).await.json();
    assert_eq!(told["answer"]["values"], json!({"note": "ok"}));
}

#[tokio::test]
async fn of_two_people_who_answer_at_once_one_wins() {
    let served = Served::start().await;
    for round in 0..25 {
        let run = format!("r{round}");
        ask(&served, &run, FORM).await;
        let body = |name: &str| json!({"decision": "submitted", "values": {"email": format!("{name}@b.cn")}});
        let (ann, bob) = (body("ann"), body("bob"));
        let (one, two) = tokio::join!(say(&served, &run, "q", &ann), say(&served, &run, "q", &bob));
        let (winner, loser) = if one.status == StatusCode::OK { (one, two) } else { (two, one) };
        assert_eq!(winner.status, StatusCode::OK, "{winner:?}");
        assert_eq!(loser.problem(409, "interaction_closed")["answer"], winner.json()["answer"]);
        assert_eq!(types(&served, &run).await[3..], ["interaction.resolved", "run.resumed"]);
    }
}

#[tokio::test]
async fn cancel_and_answer_race_to_one_outcome() {
    let served = Served::start().await;
    for round in 0..25 {
        let run = format!("r{round}");
        ask(&served, &run, APPROVAL).await;
        let (cancel, body) = (format!("/v1/runs/{run}/cancel"), json!({"decision": "approved"}));
        let (cancelled, answered) = tokio::join!(served.post(&cancel, "{}"), say(&served, &run, "a", &body));
        assert_eq!(cancelled.status, StatusCode::OK);
        let seen = types(&served, &run).await;
        assert_eq!(seen.iter().filter(|name| *name == "interaction.resolved").count(), 1, "{seen:?}");
        match answered.status {
            StatusCode::OK => assert!(seen.contains(&"run.cancel_requested".to_owned()), "{seen:?}"),
            _ => {
                assert_eq!(answered.problem(409, "run_closed")["answer"]["decision"], "cancelled");
                assert_eq!(seen.last().unwrap(), "run.cancelled");
            }
        }
    }
}

#[tokio::test]
async fn an_open_form_survives_a_restart() {
    let served = Served::start().await;
    ask(&served, "r", FORM).await;
    let before = served.get("/v1/interactions").await.json();
    let served = served.restarted().await;
    assert_eq!(served.get("/v1/interactions?status=open").await.json(), before);
    let invalid = say(&served, "r", "q", &json!({"decision": "submitted", "values": {}})).await;
    assert_eq!(invalid.problem(422, "invalid_answer")["errors"][0]["pointer"], "/email");
    let won = json!({"decision": "submitted", "values": {"email": "a@b.cn"}});
    let told = say(&served, "r", "q", &won).await.json();
    let served = served.restarted().await;
    assert_eq!(served.get("/v1/runs/r/interactions/q").await.json(), told);
    assert_eq!(say(&served, "r", "q", &won).await.json(), told);
    assert_eq!(served.get("/v1/interactions").await.json()["interactions"], json!([]));
}

#[tokio::test]
async fn the_inbox_is_paged_and_says_how_to_answer() {
    let served = Served::start().await;
    let run = json!({"run_id": "r/0", "thread_id": "t", "agent": "demo"});
    assert_eq!(served.post("/v1/runs", &run.to_string()).await.status, StatusCode::CREATED);
    ask(&served, "r%2F0", APPROVAL).await;
    for n in 1..4 {
        ask(&served, &format!("r{n}"), FORM).await;
    }
    let first = served.get("/v1/interactions?limit=3").await.json();
    let ids = |page: &Value| -> Vec<String> {
        let all = page["interactions"].as_array().unwrap();
        all.iter().map(|asked| asked["run_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&first), ["r3", "r2", "r1"]);
    let rest =
        served.get(&format!("/v1/interactions?before={}", first["next"].as_str().unwrap())).await.json();
    assert_eq!((ids(&rest), &rest["next"]), (vec!["r/0".to_owned()], &json!(null)));
    let asked = &rest["interactions"][0];
    assert_eq!(
        (&asked["agent"], &asked["thread_id"], &asked["kind"]),
        (&json!("demo"), &json!("t"), &json!("approval"))
    );
    assert_eq!((&asked["name"], &asked["answer"]), (&json!("pay"), &json!(null)));
    assert!(asked["asked_at"].is_string() && asked["expires_at"].is_string());
    let with = &asked["answer_with"];
    assert_eq!(with["decisions"], json!(["approved", "rejected", "cancelled"]));
    let path = with["path"].as_str().unwrap();
    assert_eq!(path, "/v1/runs/r%2F0/interactions/a");
    assert_eq!(served.post(path, r#"{"decision":"approved"}"#).await.status, StatusCode::OK);
    for (query, expected) in [("agent=demo", 0), ("thread=r1", 1), ("run=r2", 1), ("agent=x", 0), ("", 3)] {
        assert_eq!(
            ids(&served.get(&format!("/v1/interactions?{query}")).await.json()).len(),
            expected,
            "{query}"
        );
    }
    for (query, parameter) in
        [("status=closed", "status"), ("before=x", "before"), ("limit=0", "limit"), ("x=1", "x")]
    {
        let refused = served.get(&format!("/v1/interactions?{query}")).await;
        assert_eq!(refused.problem(400, "bad_query")["parameter"], parameter);
    }
}

/// What each dialect that can ask sends, the id that its question gets, and an answer to it.
fn askers() -> [(&'static str, &'static str, &'static str, Value); 4] {
    [
        (
            "easyflow-chat",
            "user_info",
            r#"{"protocol":"easyflow-chat","domain":"interaction","type":"form_request","conversation_id":"c","payload":{"form_id":"user_info","title":"补充信息","schema":{"type":"object","required":["age"],"properties":{"age":{"type":"number","title":"年龄"}}},"ui":{"submit_text":"继续"}}}"#,
            json!({"decision": "submitted", "values": {"age": 30}}),
        ),
        (
            "loom",
            "call-1",
            r#"{"type":"tool_approval","call_id":"call-1","name":"pay","arguments":{"sum":1},"session_id":"s","node_id":"run-a-0","event_id":2}"#,
            json!({"decision": "rejected", "reason": "too much"}),
        ),
        (
            "ag-ui",
            "i1",
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"x","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"input_required","message":"Which?","responseSchema":{"type":"object","required":["age"],"properties":{"age":{"type":"integer"}}}}]}}"#,
            json!({"decision": "submitted", "values": {"age": 3}}),
        ),
        ("runwire", "q", FORM, json!({"decision": "submitted", "values": {"email": "a@b.cn"}})),
    ]
}

#[tokio::test]
async fn an_interaction_of_any_dialect_is_answered_and_shown_in_every_dialect() {
    let served = Served::start().await;
    for (dialect, interaction, frame, body) in askers() {
        let run = format!("of-{dialect}");
        let start = match dialect {
            "ag-ui" => "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"x\"}\n",
            _ => "",
        };
        let written = served
            .post(&format!("/v1/runs/{run}/events?dialect={dialect}"), &format!("{start}{frame}\n"))
            .await;
        assert_eq!(written.status, StatusCode::OK, "{dialect}: {written:?}");
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], "suspended", "{dialect}");
        if body["decision"] == "submitted" {
            let invalid = json!({"decision": "submitted", "values": {"age": "many"}});
            say(&served, &run, interaction, &invalid).await.problem(422, "invalid_answer");
        }
        let told = say(&served, &run, interaction, &body).await;
        assert_eq!(told.status, StatusCode::OK, "{dialect}: {told:?}");
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], "running");
        for reader in runwire_model::dialect::Dialect::ALL {
            if reader.name() == "text" {
                continue;
            }
            let path = format!("/v1/runs/{run}/events?dialect={reader}&follow=false");
            let stream = served.get(&path).await;
            assert_eq!(stream.status, StatusCode::OK);
            let decision = body["decision"].as_str().unwrap();
            assert!(stream.text.contains(decision), "{dialect} in {reader}: {}", stream.text);
        }
    }
}

#[tokio::test]
async fn an_unusable_schema_is_reported_and_does_no_harm() {
    let served = Served::start().await;
    let deep = format!("{}{}", r#"{"not":"#.repeat(100), "{}".to_owned() + &"}".repeat(100));
    let large = json!({"enum": (0..60_000).map(|n| format!("choice {n}")).collect::<Vec<_>>()}).to_string();
    for (run, schema) in [
        ("remote", r#"{"$ref":"http://127.0.0.1:9/schema"}"#),
        ("recursive", r##"{"allOf":[{"$ref":"#"}]}"##),
        ("invalid", r#"{"type":"nonsense"}"#),
        ("text", r#""a text""#),
        ("pattern", r#"{"properties":{"a":{"pattern":"^(?=(a+)+$)(a|aa)+\\1b$"}}}"#),
        ("large", &large),
    ] {
        let frame = format!(
            r#"{{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{schema}}}"#
        );
        ask(&served, run, &frame).await;
        let body = json!({"decision": "submitted", "values": {"a": "a".repeat(60)}});
        let refused = say(&served, run, "q", &body).await.problem(422, "schema_unusable");
        assert!(refused["detail"].as_str().unwrap().len() < 1000);
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], "suspended");
        let withdrawn = say(&served, run, "q", &json!({"decision": "cancelled"})).await;
        assert_eq!(withdrawn.status, StatusCode::OK);
    }
    let frame =
        format!(r#"{{"type":"interaction.requested","interaction_id":"q","kind":"form","schema":{deep}}}"#);
    ask(&served, "deep", &frame).await;
    let answered = say(&served, "deep", "q", &json!({"decision": "submitted", "values": {}})).await;
    assert!([200, 422].contains(&answered.status.as_u16()), "{answered:?}");
    ask(&served, "good", FORM).await;
    let body = json!({"decision": "submitted", "values": {"email": "a@b.cn"}});
    assert_eq!(say(&served, "good", "q", &body).await.status, StatusCode::OK);
}

#[tokio::test]
async fn expensive_patterns_delay_no_other_answer() {
    let served = Served::start().await;
    let names: Vec<_> = (0..20).map(|n| format!("f{n}")).collect();
    let fields: Value = names.iter().map(|name| (name, json!({"pattern": "a[ab]{9000}[cd]"}))).collect();
    let values: Value = names.iter().map(|name| (name, json!("a".repeat(12_000)))).collect();
    let question = json!({"type": "interaction.requested", "interaction_id": "q", "kind": "form", "schema": {"properties": fields}});
    let hostile = async |run: &str| {
        ask(&served, run, &question.to_string()).await;
        let body = json!({"decision": "submitted", "values": values});
        say(&served, run, "q", &body).await.problem(422, "schema_unusable");
    };
    // As many as are checked at once.
    tokio::join!(hostile("r1"), hostile("r2"), hostile("r3"), hostile("r4"));
    ask(&served, "good", FORM).await;
    let body = json!({"decision": "submitted", "values": {"email": "a@b.cn"}});
    assert_eq!(within_timeout(say(&served, "good", "q", &body)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_socket_answers_and_reads_the_answer() {
    let served = Served::start().await;
    ask(&served, "r", FORM).await;
    let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let url = format!("ws://{}/v1/ws", served.address);
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let mut talk = async |message: Value| -> Value {
        socket.send(Message::text(message.to_string())).await.unwrap();
        match within_timeout(socket.next()).await.unwrap().unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let answer = |values: Value| json!({"op": "answer", "id": 1, "run": "r", "interaction": "q", "decision": "submitted", "values": values});
    let wrong = talk(answer(json!({}))).await;
    assert_eq!(
        (&wrong["op"], &wrong["code"], &wrong["errors"][0]["pointer"]),
        (&json!("error"), &json!("invalid_answer"), &json!("/email"))
    );
    let ack = talk(answer(json!({"email": "a@b.cn"}))).await;
    assert_eq!((&ack["op"], &ack["accepted"], &ack["status"]), (&json!("ack"), &json!(1), &json!("running")));
    assert_eq!(ack["interaction"]["answer"]["values"], json!({"email": "a@b.cn"}));
    assert_eq!(talk(answer(json!({"email": "a@b.cn"}))).await["duplicates"], 1);
    let late = talk(answer(json!({"email": "b@b.cn"}))).await;
    assert_eq!(
        (&late["code"], &late["answer"]),
        (&json!("interaction_closed"), &ack["interaction"]["answer"])
    );
    assert_eq!(talk(json!({"op": "answer", "id": 2, "run": "r"})).await["code"], "bad_message");
    for (accepted, last_seq) in [(1, 4), (0, 4)] {
        let cancelled = talk(json!({"op": "cancel", "id": 3, "run": "r"})).await;
        let acknowledged = json!({
            "op": "ack", "id": 3, "accepted": accepted, "duplicates": 0, "last_seq": last_seq, "status": "running"
        });
        assert_eq!(cancelled, acknowledged, "what was asked before changes nothing");
    }
}
