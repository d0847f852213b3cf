//! The agents of a server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::Error;

/// An agent that a server can start. What a newer server adds is kept in `others`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Its name in requests.
    pub name: String,
    /// `http`, `exec` or `demo`.
    pub kind: String,
    /// Its dialect.
    pub dialect: String,
    /// Whether it is the default agent of façades.
    #[serde(default)]
    pub default: bool,
    /// Everything else.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct AgentList {
    agents: Vec<AgentInfo>,
}

impl Client {
    /// Lists the agents that the server starts.
    pub async fn agents(&self) -> Result<Vec<AgentInfo>, Error> {
        let list: AgentList =
            self.http.get_json(&self.http.endpoint().segment("v1").segment("agents")).await?;
        Ok(list.agents)
    }
}
