//! Actions of kind `shell`: a command for a runner service. Curfew itself starts no processes.

use serde_json::Value;

use crate::cel::Template;
use crate::definition::action::NAMES;
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
        let runner = read_runner(reader);
        let command = reader.required_template("command", NAMES);
        let template = |field| reader.template(field, NAMES);
        let (headers, args, env) = (template("headers"), template("args"), template("env"));
        let (cwd, stdin) = (template("cwd"), template("stdin"));
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

fn exit_code(value: &Value) -> Option<u8> {
    u8::try_from(value.as_u64()?).ok()
}
