//! What an action of kind `shell` says: a command for a runner service, which is the only one that starts processes.

use serde_json::Value;

use crate::cel::Template;
use crate::definition::action::{NAMES, required_template};
use crate::definition::reader::Reader;

#[derive(Clone, Debug)]
pub struct Shell {
    pub runner: Runner,
    pub headers: Option<Template>,
    pub command: Template,
    pub args: Option<Template>,
    pub env: Option<Template>,
    pub cwd: Option<Template>,
    pub stdin: Option<Template>,
    /// Exit codes that are a success; absent: 0.
    pub expect_exit: Option<Vec<u8>>,
}

/// Who runs the command.
#[derive(Clone, Debug)]
pub enum Runner {
    /// A Worker bound to the executor.
    Binding(String),
    Url(Template),
}

impl Shell {
    pub(super) fn read(reader: &Reader) -> Option<Shell> {
        let runner = read_runner(reader);
        let command = required_template(reader, "command");
        let template = |field| reader.template(field, NAMES);
        let (headers, args, env) = (template("headers"), template("args"), template("env"));
        let (cwd, stdin) = (template("cwd"), template("stdin"));
        let expect_exit = read_expect_exit(reader);
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

fn read_runner(reader: &Reader) -> Option<Runner> {
    let binding = reader.string("binding");
    let url = reader.template("url", NAMES);
    match (reader.has("binding"), reader.has("url")) {
        (true, false) => binding.map(|name| Runner::Binding(name.to_string())),
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

/// One exit code or a list of them.
fn read_expect_exit(reader: &Reader) -> Option<Vec<u8>> {
    let written = reader.any("expect_exit")?;
    let code = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    let codes: Option<Vec<u8>> = match written {
        Value::Array(values) => values.iter().map(code).collect(),
        single => code(single).map(|number| vec![number]),
    };
    if codes.as_ref().is_none_or(Vec::is_empty) {
        reader.report(
            "expect_exit",
            "wrong_type",
            "expected an exit code (0-255) or a list of them",
        );
    }
    codes
}
