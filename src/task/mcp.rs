//! MCP over Streamable HTTP: builds the messages to a server and reads those that come back. Pure; `mcp_client` sends them.

use serde_json::{Map, Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::definition::mcp_tool::McpTool;
use crate::task::partial::ARTIFACT_BYTES;
use crate::task::redact::Redactor;
use crate::task::request::{Outgoing, object, parse_url, render, text};
use crate::task::runtime::ActionCall;

/// The version that is proposed, and those that a server may choose instead.
const PROTOCOL: &str = "2025-06-18";
const KNOWN_PROTOCOLS: &[&str] = &["2025-03-26", PROTOCOL, "2025-11-25"];

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How much of a server's text a message quotes.
const QUOTED_CHARACTERS: usize = 1_000;

/// A tool and its server, with all templates rendered.
#[derive(Debug)]
pub struct McpCall {
    /// The part that all requests to the server share.
    base: Outgoing,
    tool: String,
    arguments: Value,
}

/// The server's response to `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// None if the server keeps no sessions.
    pub id: Option<String>,
    /// None until the server has responded.
    pub protocol: Option<String>,
}

impl McpCall {
    pub fn of(tool: &McpTool, call: &ActionCall, key: &str) -> Result<McpCall, Failure> {
        let scope = call.scope;
        let url = parse_url(&text(&tool.server_url, scope, "server_url")?)?;
        let name = text(&tool.tool, scope, "tool")?;
        call.notes.tool_called(&name, call.secrets.redactor());
        let arguments = match &tool.arguments {
            Some(arguments) => render(arguments, scope, "arguments")?,
            None => call.input.clone(),
        };
        let arguments = match arguments {
            Value::Null => Map::new(),
            other => object(other, "arguments")?,
        };
        let headers = tool.headers.as_ref();
        let mut base = Outgoing::new(url, "POST", headers, json!({}), scope, key)?.traced_by(call)?;
        // These override the action's own: the transport needs them.
        base.set_header("content-type", "application/json")?;
        base.set_header("accept", "application/json, text/event-stream")?;
        Ok(McpCall {
            base,
            tool: name,
            arguments: Value::Object(arguments),
        })
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// For checking its address.
    pub fn first_request(&self) -> &Outgoing {
        &self.base
    }

    pub fn initialize(&self, id: u64) -> Value {
        let client = json!({"name": "curfew", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        request(id, "initialize", params)
    }

    /// The progress token asks the server for progress notifications.
    pub fn call(&self, id: u64) -> Value {
        let meta = json!({"progressToken": id});
        let params = json!({"name": self.tool, "arguments": self.arguments, "_meta": meta});
        request(id, "tools/call", params)
    }

    /// Only the call of the tool is work that must not be done twice, so only it has an idempotency key.
    pub fn post(&self, session: &Session, message: &Value) -> Result<Outgoing, Failure> {
        let mut outgoing = self.in_session(session)?;
        if message["method"] != "tools/call" {
            outgoing.headers.retain(|(name, _)| name != IDEMPOTENCY_KEY);
        }
        outgoing.body = Some(message.to_string());
        Ok(outgoing)
    }

    /// Ends the session; none if there is no session to end.
    pub fn delete(&self, session: &Session) -> Option<Outgoing> {
        session.id.as_ref()?;
        let mut outgoing = self.in_session(session).ok()?;
        let is_ours = |name: &str| name == IDEMPOTENCY_KEY || name == "content-type";
        outgoing.headers.retain(|(name, _)| !is_ours(name));
        outgoing.method = "DELETE".into();
        outgoing.body = None;
        Some(outgoing)
    }

    fn in_session(&self, session: &Session) -> Result<Outgoing, Failure> {
        let mut outgoing = self.base.clone();
        if let Some(protocol) = &session.protocol {
            outgoing.set_header("mcp-protocol-version", protocol)?;
        }
        if let Some(id) = &session.id {
            outgoing.set_header("mcp-session-id", id)?;
        }
        Ok(outgoing)
    }
}

pub fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

pub fn cancelled(id: u64) -> Value {
    let params = json!({"requestId": id, "reason": "the deadline of the call has passed"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The version of the session.
pub fn protocol_of(initialized: &Value) -> Result<String, Failure> {
    match initialized["protocolVersion"].as_str() {
        Some(version) if KNOWN_PROTOCOLS.contains(&version) => Ok(version.to_string()),
        Some(version) => Err(Failure::permanent(
            "unsupported_protocol",
            format!(
                "the server speaks MCP {}; known are {}",
                start_of(version, 40),
                KNOWN_PROTOCOLS.join(", ")
            ),
        )),
        None => Err(invalid("its answer to initialize names no protocolVersion")),
    }
}

/// A message of the server that needs a reaction.
#[derive(Debug, PartialEq)]
pub enum ServerMessage {
    /// The response to the awaited request.
    Response(Result<Value, Failure>),
    /// A request of the server, with the reply to it.
    Request { reply: Value },
}

/// Finds the response to one request among the server's messages, and keeps its notifications.
#[derive(Debug)]
pub struct MessageReader<'a> {
    pub awaited: u64,
    pub notes: &'a mut Notes,
    pub redactor: &'a Redactor,
}

impl MessageReader<'_> {
    /// `text` is one message or a batch of them.
    pub fn read(&mut self, text: &str) -> Result<Vec<ServerMessage>, Failure> {
        let message: Value = serde_json::from_str(text)
            .map_err(|error| invalid(&format!("what it sent is not JSON: {error}")))?;
        Ok(match message {
            Value::Array(batch) => batch.iter().filter_map(|one| self.read_one(one)).collect(),
            single => self.read_one(&single).into_iter().collect(),
        })
    }

    fn read_one(&mut self, message: &Value) -> Option<ServerMessage> {
        let id = &message["id"];
        if let Some(method) = message["method"].as_str() {
            if id.is_null() {
                self.notes.take(method, &message["params"], self.redactor);
                return None;
            }
            let reply = match method {
                "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                // The client has announced no capabilities. The error keeps the server from waiting for one.
                _ => json!({"jsonrpc": "2.0", "id": id,
                    "error": {"code": -32601, "message": format!("method not found: {}", start_of(method, 100))}}),
            };
            return Some(ServerMessage::Request { reply });
        }
        let error = &message["error"];
        // A server that could not parse the request does not know its id.
        let is_ours = *id == self.awaited || (id.is_null() && error.is_object());
        if !is_ours {
            return None;
        }
        Some(ServerMessage::Response(match (&message["result"], error) {
            (_, Value::Object(_)) => Err(rpc_failure(error, self.redactor)),
            (Value::Null, _) => Err(invalid("its answer has neither a result nor an error")),
            (result, _) => Ok(result.clone()),
        }))
    }
}

/// The newest lines of the server's progress, for a call that is stopped.
#[derive(Debug, Default)]
pub struct Notes(String);

impl Notes {
    fn take(&mut self, method: &str, params: &Value, redactor: &Redactor) {
        let line = match method {
            "notifications/progress" => match (&params["message"], &params["progress"], &params["total"]) {
                (Value::String(message), _, _) => message.clone(),
                (_, Value::Number(done), Value::Number(total)) => format!("progress {done} of {total}"),
                (_, Value::Number(done), _) => format!("progress {done}"),
                _ => return,
            },
            "notifications/message" => match &params["data"] {
                Value::Null => return,
                data => crate::task::context::plain(data.clone()),
            },
            // Other notifications are for clients that list the server's tools.
            _ => return,
        };
        // Redacted before it is cut: half a secret would not be found.
        self.0.push_str(&redactor.text(line));
        self.0.push('\n');
        let too_many = self.0.len().saturating_sub(ARTIFACT_BYTES);
        if too_many > 0 {
            let cut = self.0.ceil_char_boundary(too_many);
            let line_end = self.0[cut..].find('\n').map_or(cut, |end| cut + end + 1);
            self.0
                .drain(..if line_end < self.0.len() { line_end } else { cut });
        }
    }

    /// None if there were no notifications.
    pub fn into_text(mut self) -> Option<String> {
        self.0.truncate(self.0.trim_end().len());
        (!self.0.is_empty()).then_some(self.0)
    }
}

/// The step's result, or the failure that the tool reports as its result.
pub fn fold_result(tool: &str, result: &Value, redactor: &Redactor) -> Result<Value, Failure> {
    let Value::Array(content) = &result["content"] else {
        return Err(invalid("the tool's result has no content"));
    };
    let texts = content.iter().filter(|part| part["type"] == "text");
    let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
    let text = texts.join("\n");
    if result["isError"] == true {
        let reason = match text.is_empty() {
            true => "it does not say why".to_string(),
            false => quoted(&text, redactor),
        };
        return Err(Failure::permanent(
            "tool_error",
            format!("the tool \"{tool}\" failed: {reason}"),
        ));
    }
    Ok(json!({
        "content": content,
        "structured": result["structuredContent"],
        "text": text,
        "is_error": false,
    }))
}

fn rpc_failure(error: &Value, redactor: &Redactor) -> Failure {
    let code = error["code"].as_i64();
    let class = match code {
        Some(-32602) => FailureClass::Validation,
        Some(-32601 | -32600 | -32700) => FailureClass::BadRequest,
        Some(_) | None => FailureClass::Unknown,
    };
    let code = code.map_or("without a code".to_string(), |code| code.to_string());
    let message = quoted(error["message"].as_str().unwrap_or_default(), redactor);
    Failure::new(
        "rpc_error",
        class,
        format!("the server answered with error {code}: {message}"),
    )
}

/// The response is invalid, and so would be that to another call.
pub fn invalid(what: &str) -> Failure {
    Failure::validation(
        "invalid_response",
        format!("the server does not speak MCP: {what}"),
    )
}

fn quoted(text: &str, redactor: &Redactor) -> String {
    // Redacted before it is cut: half a secret would not be found.
    start_of(&redactor.text(text.to_string()), QUOTED_CHARACTERS)
}

fn start_of(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
