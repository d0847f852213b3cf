//! Runs and threads: made, listed, looked at, acted on.

use futures_util::TryStreamExt;
use runwire_client::{Client, Error, Json, NewRun, NewThread, RunFilter, RunStatus};

use crate::reading_way::{COMPLETED, Scripted, Then, answer, delta, write};
use crate::writing_stage::{Stage, patient};

#[tokio::test]
async fn a_run_is_created_looked_at_and_cancelled() {
    let stage = Stage::start().await;
    let client = stage.client();
    client.ready().await.unwrap();
    assert_eq!(client.server_version().await.unwrap(), env!("CARGO_PKG_VERSION"));
    let new = NewRun {
        run_id: Some("r1".into()),
        thread_id: Some("t1".into()),
        message: Some("Hello?".into()),
        input: Json::parse("{\"n\":1}").ok(),
        ..NewRun::default()
    };
    let created = client.create_run(&new).await.unwrap();
    assert_eq!((created.run_id.as_str(), created.thread_id.as_str()), ("r1", "t1"));
    assert_eq!(created.status, RunStatus::Pending);
    assert_eq!(client.create_run(&new).await.unwrap().run_id, "r1");
    let run = client.run("r1");
    write(&run, &delta("one")).await;
    let info = run.info().await.unwrap();
    assert_eq!((info.status, info.counts.messages), (RunStatus::Running, 1));
    assert!(
        info.started_at.is_some() && info.ended_at.is_none() && info.others.is_empty(),
        "{:?}",
        info.others
    );
    assert!(!run.heartbeat().await.unwrap().cancel_requested);
    assert!(run.cancel(Some("enough")).await.unwrap().cancel_requested);
    assert!(run.heartbeat().await.unwrap().cancel_requested);
    write(&run, COMPLETED).await;
    assert!(run.info().await.unwrap().status.is_closed());
}

#[tokio::test]
async fn lists_are_read_over_as_many_pages_as_there_are() {
    let stage = Stage::start().await;
    let client = stage.client();
    for n in 0..7 {
        write(&client.run(format!("r{n}")), &(delta("x") + if n == 3 { "" } else { COMPLETED })).await;
        let thread = NewThread { thread_id: Some(format!("t{n}")), parallel: n == 0 };
        client.create_thread(&thread).await.unwrap();
    }
    let filter = RunFilter { limit: Some(2), ..RunFilter::default() };
    let page = client.runs(&filter).await.unwrap();
    assert_eq!((page.runs.len(), page.next.as_deref()), (2, Some("r5")));
    let all: Vec<_> = patient(client.all_runs(filter).map_ok(|run| run.run_id).try_collect()).await.unwrap();
    assert_eq!(all, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    assert_eq!(client.runs(&running).await.unwrap().runs[0].run_id, "r3");
    let page = client.threads(None, Some(2)).await.unwrap();
    assert_eq!((page.threads.len(), page.next.is_some()), (2, true));
    let threads: Vec<_> = patient(client.all_threads().try_collect()).await.unwrap();
    assert!(threads.iter().any(|thread| thread.thread_id == "t0" && thread.parallel));
    assert_eq!(threads.len(), 14);
}

#[tokio::test]
async fn what_a_server_of_another_version_says_is_kept_or_refused_kindly() {
    let run = r#"{"run_id":"r","thread_id":"t","status":"dreaming","mood":"good","counts":{"dreams":2}}"#;
    let server = Scripted::play(vec![(answer("200 OK", "application/json", run), Then::Close)]).await;
    let info = patient(server.client().build().unwrap().run("r").info()).await.unwrap();
    assert_eq!(info.status, RunStatus::Unknown("dreaming".into()));
    assert_eq!((&info.others["mood"], &info.counts.others["dreams"]), (&"good".into(), &2.into()));
    // What this version knows and the server does not yet.
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    let error = run.retry().await.unwrap_err();
    assert_eq!(error.problem().unwrap().status(), 404, "{error}");
}

#[tokio::test]
async fn a_path_before_the_server_and_a_token_are_sent() {
    let problem = r#"{"status":401,"code":"unauthorized","title":"Who are you?"}"#;
    let answers = vec![(answer("401 Unauthorized", "application/problem+json", problem), Then::Close)];
    let server = Scripted::play(answers).await;
    let url = format!("http://{}/runs/of/ours/", server.address);
    let client = Client::builder().url(url).token("secret").build().unwrap();
    let error = patient(client.run("r").info()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Some("unauthorized"), "Who are you? [unauthorized]")
    );
    let request = server.requests().await.remove(0);
    assert!(request.starts_with("GET /runs/of/ours/v1/runs/r HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    assert!(matches!(Client::builder().token("two words").build(), Err(Error::Token)));
    assert!(matches!(Client::builder().url("localhost").build(), Err(Error::Url { .. })));
}

#[test]
fn what_is_read_can_be_handed_to_another_task() {
    fn check<T: Send + Unpin + 'static>() {}
    check::<runwire_client::Events>();
    check::<runwire_client::Frames>();
    check::<runwire_client::Texts>();
    check::<runwire_client::MessageStates>();
    check::<runwire_client::RunHandle>();
}
