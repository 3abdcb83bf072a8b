//! Rows and what they stand for. These shapes are persisted in every run's object: pinned by golden files,
//! changed only by a migration or an optional field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Header, Lane, RunStatus, StartRequest, Token, TokenId, TokenStatus};
use crate::model::failure::Failure;
use crate::model::snapshot::Snapshot;
use crate::model::time::Millis;
use crate::wire::StepReport;

/// Row `header` of table `run`.
#[derive(Debug, Serialize, Deserialize)]
pub struct HeaderRow {
    pub schema: u32,
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub request: StartRequest,
    pub revision: u64,
}

impl HeaderRow {
    pub fn of(header: &Header) -> HeaderRow {
        let header = header.clone();
        HeaderRow {
            schema: super::schema::VERSION,
            id: header.id,
            workflow_id: header.workflow_id,
            version: header.version,
            status: header.status,
            started_at: header.started_at,
            ended_at: header.ended_at,
            timeout_at: header.timeout_at,
            timeout_ms: header.timeout_ms,
            attempt: header.attempt,
            output: header.output,
            error: header.error,
            reason: header.reason,
            tags: header.tags,
            request: header.request,
            revision: header.revision,
        }
    }

    pub fn into_header(self) -> Header {
        Header {
            id: self.id,
            workflow_id: self.workflow_id,
            version: self.version,
            status: self.status,
            started_at: self.started_at,
            ended_at: self.ended_at,
            timeout_at: self.timeout_at,
            timeout_ms: self.timeout_ms,
            attempt: self.attempt,
            output: self.output,
            error: self.error,
            reason: self.reason,
            tags: self.tags,
            request: self.request,
            revision: self.revision,
        }
    }
}

/// Column `row` of table `tokens`. The id and the status stand in columns of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenRow {
    pub node_id: String,
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_count: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    pub created_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, u64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl TokenRow {
    pub fn of(token: &Token, snapshot: &Snapshot) -> TokenRow {
        let token = token.clone();
        TokenRow {
            node_id: snapshot.workflow.nodes[token.node].id.clone(),
            epoch: token.epoch,
            retry_count: token.retry_count,
            lost_count: token.lost_count,
            lane: token.lane,
            parent: token.parent.map(|id| id.0),
            created_at: token.created_at,
            dispatched_at: token.dispatched_at,
            started_at: token.started_at,
            ended_at: token.ended_at,
            timeout_at: token.timeout_at,
            timeout_ms: token.timeout_ms,
            watch_at: token.watch_at,
            reason: token.reason,
            error: token.error,
            cause: token.cause,
            output: token.output,
            steps: token.steps,
            loops: token.loops,
        }
    }

    pub fn into_token(self, id: u64, status: TokenStatus, snapshot: &Snapshot) -> Result<Token, String> {
        let node = snapshot
            .workflow
            .node_index(&self.node_id)
            .ok_or_else(|| format!("token t{id} stands at unknown node {}", self.node_id))?;
        Ok(Token {
            id: TokenId(id),
            node,
            status,
            epoch: self.epoch,
            retry_count: self.retry_count,
            lost_count: self.lost_count,
            lane: self.lane,
            parent: self.parent.map(TokenId),
            created_at: self.created_at,
            dispatched_at: self.dispatched_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            timeout_at: self.timeout_at,
            timeout_ms: self.timeout_ms,
            watch_at: self.watch_at,
            reason: self.reason,
            error: self.error,
            cause: self.cause,
            output: self.output,
            steps: self.steps,
            loops: self.loops,
        })
    }
}

pub fn parse_status(name: &str) -> Result<TokenStatus, String> {
    TokenStatus::ALL
        .into_iter()
        .find(|status| status.name() == name)
        .ok_or_else(|| format!("unknown token status {name}"))
}
