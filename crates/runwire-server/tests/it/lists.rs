//! Lists of runs and threads: filters, fields, and conditional requests.

use bytes::Bytes;
use http::{Method, StatusCode};
use runwire_agents::demos;
use serde_json::{Value, json};

use crate::harness::{Answer, COMPLETED, Served, delta};

/// The runs that a list has, in its order.
fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let runs = answer.json()["runs"].as_array().unwrap().clone();
    runs.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

async fn known(served: &Served, path: &str, tag: &str) -> Answer {
    let request = served.request(Method::GET, path, &[("if-none-match", tag)]);
    served.send(request.body(Bytes::new()).unwrap()).await
}

/// Fails where an answer is not what the OpenAPI document says of it.
async fn assert_described(served: &Served, answer: &Answer, schema: &str) {
    let mut document = served.get("/openapi.json").await.json();
    document["$ref"] = json!(format!("#/components/schemas/{schema}"));
    let value = answer.json();
    let schema = jsonschema::validator_for(&document).unwrap();
    let faults: Vec<String> = schema.iter_errors(&value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}\n{value:#}");
}

/// Three runs in two threads: one failed, one done, one that waits.
async fn some_runs(served: &Served) {
    let made = [("weather-1", "t1", "weather", "Rain?"), ("weather-2", "t1", "weather", "Sun?")];
    for (run, thread, agent, message) in made {
        let body = json!({"run_id": run, "thread_id": thread, "agent": agent, "message": message});
        assert_eq!(served.post("/v1/runs", &body.to_string()).await.status, StatusCode::CREATED);
        let end =
            if run == "weather-1" { r#"{"type":"run.failed","error":{"message":"no"}}"# } else { COMPLETED };
        served.post(&format!("/v1/runs/{run}/events"), &format!("{}{end}", delta("a"))).await.written(2, 0);
    }
    let told = r#"{"type":"run.started","message":"什么时候下雨？"}"#;
    served.post("/v1/runs/trip-1/events", told).await.written(1, 0);
}

#[tokio::test]
async fn runs_are_found_by_states_prefix_and_time() {
    let served = Served::start().await;
    some_runs(&served).await;
    let listed = async |query: &str| ids(&served.get(&format!("/v1/runs?{query}")).await);
    assert_eq!(listed("status=failed,completed").await, ["weather-2", "weather-1"]);
    assert_eq!(listed("status=running,failed&limit=1").await, ["trip-1"]);
    assert_eq!(listed("prefix=weather").await, ["weather-2", "weather-1"]);
    assert_eq!(listed("prefix=t1").await, ["weather-2", "weather-1"]);
    assert_eq!(listed("prefix=trip&status=running").await, ["trip-1"]);
    assert_eq!(listed("since=2020-01-01T00:00:00Z&agent=weather").await.len(), 2);
    assert_eq!(listed("until=2020-01-01T00:00:00Z").await, [""; 0]);
    for wrong in ["status=failed,odd", "status=", "since=yesterday"] {
        served.get(&format!("/v1/runs?{wrong}")).await.problem(400, "bad_query");
    }
}

#[tokio::test]
async fn lists_summarize_each_run_and_thread() {
    let served = Served::start().await;
    some_runs(&served).await;
    let runs = served.get("/v1/runs").await;
    assert_described(&served, &runs, "RunList").await;
    let runs = runs.json();
    assert_eq!(
        (&runs["runs"][0]["message"], &runs["runs"][2]["message"]),
        (&json!("什么时候下雨？"), &json!("Rain?"))
    );
    assert_eq!(runs["runs"][2]["error"]["message"], "no");
    let threads = served.get("/v1/threads").await;
    assert_described(&served, &threads, "ThreadList").await;
    let threads = threads.json();
    let first =
        threads["threads"].as_array().unwrap().iter().find(|thread| thread["thread_id"] == "t1").unwrap();
    assert_eq!((&first["title"], &first["runs"]), (&json!("Rain?"), &json!(2)));
    let latest = &first["latest"];
    assert_eq!(
        (&latest["run_id"], &latest["status"], &latest["agent"]),
        (&json!("weather-2"), &json!("completed"), &json!("weather"))
    );
    served.post("/v1/threads", r#"{"thread_id":"empty"}"#).await;
    let empty = served.get("/v1/threads/empty").await;
    assert_described(&served, &empty, "Thread").await;
    assert_eq!((&empty.json()["title"], &empty.json()["latest"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_list_is_not_made_again_while_nothing_was_written() {
    let served = Served::start().await;
    some_runs(&served).await;
    for path in ["/v1/runs", "/v1/runs?status=failed", "/v1/threads", "/v1/interactions?status=open"] {
        // Reading may bring the store in order, which is a commit too: the second answer is of one that is.
        served.get(path).await;
        let first = served.get(path).await;
        assert_eq!(first.headers["cache-control"], "no-cache");
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let again = known(&served, path, &format!("\"other\", {tag}")).await;
        assert_eq!((again.status, again.text.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        assert_eq!(again.headers["etag"].to_str().unwrap(), tag);
    }
    let runs = served.get("/v1/runs").await;
    let tag = runs.headers["etag"].to_str().unwrap().to_owned();
    served.post("/v1/runs/trip-1/events", COMPLETED).await.written(1, 0);
    // Whoever wrote sees it in the next answer, whatever tag it sends.
    let changed = known(&served, "/v1/runs", &tag).await;
    assert_eq!(changed.json()["runs"][0]["status"], "completed");
    let tag = changed.headers["etag"].to_str().unwrap().to_owned();
    let served = served.restarted().await;
    assert_eq!(known(&served, "/v1/runs", &tag).await.status, StatusCode::OK, "another start has other tags");
}

#[tokio::test]
async fn demo_agents_list_example_messages() {
    let served = Served::with(|config| config.agents = demos(true)).await;
    let agents = served.get("/v1/agents").await;
    assert_described(&served, &agents, "AgentList").await;
    for agent in agents.json()["agents"].as_array().unwrap() {
        let examples = agent["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{agent}");
        assert!(examples.iter().all(|words| words["en"].is_string() && words["zh"].is_string()), "{agent}");
    }
}
