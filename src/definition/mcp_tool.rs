//! Actions of kind `mcp_tool`: a call of a tool on a server with MCP over Streamable HTTP.

use crate::cel::Template;
use crate::definition::action::NAMES;
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
        let server_url = reader.required_template("server_url", NAMES);
        let tool = reader.required_template("tool", NAMES);
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
