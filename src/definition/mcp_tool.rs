//! What an action of kind `mcp_tool` says: a tool of a server that speaks MCP over Streamable HTTP.

use crate::cel::Template;
use crate::definition::action::{NAMES, required_template};
use crate::definition::reader::Reader;

#[derive(Clone, Debug)]
pub struct McpTool {
    pub server_url: Template,
    pub tool: Template,
    pub headers: Option<Template>,
    /// Absent: the step's input.
    pub arguments: Option<Template>,
}

impl McpTool {
    pub(super) fn read(reader: &Reader) -> Option<McpTool> {
        let server_url = required_template(reader, "server_url");
        let tool = required_template(reader, "tool");
        let headers = reader.template("headers", NAMES);
        let arguments = reader.template("arguments", NAMES);
        Some(McpTool {
            server_url: server_url?,
            tool: tool?,
            headers,
            arguments,
        })
    }
}
