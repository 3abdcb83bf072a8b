//! Actions of kind `mcp_tool`: a call of a tool on a server with MCP over Streamable HTTP.

use crate::cel::Template;
use crate::definition::action::NAMES;
use crate::definition::reader::Reader;
use crate::definition::typed::TypedFields;

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
        let fields = TypedFields { reader, names: NAMES };
        let server_url = fields.required_url("server_url");
        let tool = fields.required_text("tool");
        let headers = fields.headers("headers");
        let arguments = fields.object("arguments");
        Some(McpTool {
            server_url: server_url?,
            tool: tool?,
            headers,
            arguments,
        })
    }
}
