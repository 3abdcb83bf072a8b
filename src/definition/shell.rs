//! Actions of kind `shell`: a command for a runner service. Curfew itself starts no processes.

use serde_json::Value;

use crate::cel::Template;
use crate::definition::action::NAMES;
use crate::definition::reader::Reader;
use crate::definition::typed::{TypedFields, read_binding};

#[derive(Clone, Debug)]
pub struct Shell {
    pub runner: Runner,
    pub headers: Option<Template>,
    pub command: Template,
    pub args: Option<Template>,
    pub env: Option<Template>,
    pub cwd: Option<Template>,
    pub stdin: Option<Template>,
    /// Exit codes that count as success. Absent: 0.
    pub expect_exit: Option<Vec<u8>>,
}

/// The service that runs the command.
#[derive(Clone, Debug)]
pub enum Runner {
    /// A Worker bound to the executor.
    Binding(String),
    Url(Template),
}

impl Shell {
    pub(super) fn read(reader: &Reader) -> Option<Shell> {
        let fields = TypedFields { reader, names: NAMES };
        let runner = read_runner(&fields);
        let command = fields.required_text("command");
        let headers = fields.headers("headers");
        let (args, env) = (fields.list("args"), fields.object("env"));
        let (cwd, stdin) = (fields.string("cwd"), reader.template("stdin", NAMES));
        let expect_exit = reader.one_or_list("expect_exit", "an exit code (0-255)", exit_code);
        Some(Shell {
            runner: runner?,
            headers,
            command: command?,
            args,
            env,
            cwd,
            stdin,
            expect_exit,
        })
    }
}

fn read_runner(fields: &TypedFields) -> Option<Runner> {
    let reader = fields.reader;
    let binding = read_binding(reader, "binding");
    let url = fields.url("url");
    match (reader.has("binding"), reader.has("url")) {
        (true, false) => binding.map(Runner::Binding),
        (false, true) => url.map(Runner::Url),
        (true, true) => {
            reader.report(
                "url",
                "both_forms",
                "a command has one runner: \"binding\" or \"url\", not both",
            );
            None
        }
        (false, false) => {
            reader.report(
                "url",
                "missing_field",
                "\"binding\" or \"url\" of a runner is required",
            );
            None
        }
    }
}

fn exit_code(value: &Value) -> Option<u8> {
    u8::try_from(value.as_u64()?).ok()
}
