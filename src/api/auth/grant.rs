//! What a setting grants: a role, or an object with roles, workflows and, for a token, a name and an expiry. No message
//! quotes a part of a setting: it may be a token in the wrong place.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::api::auth::role::{Role, Roles};
use crate::base::time::Millis;
use crate::protocol::caller::WorkflowScope;

/// Names end up in events and logs.
const NAME_CHARACTERS_MAX: usize = 256;
const PATTERNS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub roles: Roles,
    pub workflows: WorkflowScope,
}

/// A grant with the fields that only tokens have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    pub grant: Grant,
    pub name: Option<String>,
    /// From this moment on the token is refused.
    pub expires_at: Option<Millis>,
}

impl Grant {
    pub fn read(value: &Value) -> Result<Grant, String> {
        let Value::Object(fields) = value else {
            return Grant::read_role(value);
        };
        refuse_unknown(fields, &["roles", "workflows"])?;
        Grant::read_object(fields)
    }

    fn read_role(value: &Value) -> Result<Grant, String> {
        let Some(name) = value.as_str() else {
            return Err(format!(
                "its value is neither a role nor an object with \"roles\"; the roles are {}",
                role_names()
            ));
        };
        Ok(Grant {
            roles: role(name)?,
            workflows: WorkflowScope::UNLIMITED,
        })
    }

    fn read_object(fields: &Map<String, Value>) -> Result<Grant, String> {
        let roles = match fields.get("roles") {
            None => return Err(format!("\"roles\" is missing: a list of {}", role_names())),
            Some(Value::String(name)) => role(name)?,
            Some(Value::Array(names)) if !names.is_empty() => {
                let mut roles = Roles::NONE;
                for name in names {
                    roles = roles.union(role(name.as_str().unwrap_or_default())?);
                }
                roles
            }
            Some(_) => {
                return Err(format!(
                    "\"roles\" is a role or a list of at least one; the roles are {}",
                    role_names()
                ));
            }
        };
        let workflows = match fields.get("workflows") {
            None => WorkflowScope::UNLIMITED,
            Some(patterns) => read_scope(patterns)?,
        };
        Ok(Grant { roles, workflows })
    }
}

impl TokenGrant {
    pub fn read(value: &Value) -> Result<TokenGrant, String> {
        let Value::Object(fields) = value else {
            return Ok(TokenGrant {
                grant: Grant::read_role(value)?,
                name: None,
                expires_at: None,
            });
        };
        refuse_unknown(fields, &["name", "roles", "workflows", "expires_at"])?;
        let name = match fields.get("name") {
            None => None,
            Some(name) => Some(read_name(name)?),
        };
        let expires_at = match fields.get("expires_at") {
            None => None,
            Some(moment) => Some(
                moment
                    .as_u64()
                    .ok_or("\"expires_at\" is not a number of Unix milliseconds")?,
            ),
        };
        Ok(TokenGrant {
            grant: Grant::read_object(fields)?,
            name,
            expires_at,
        })
    }
}

fn refuse_unknown(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match fields.keys().all(|field| known.contains(&field.as_str())) {
        true => Ok(()),
        false => Err(format!(
            "it has an unknown field; the known ones are {}",
            known.join(", ")
        )),
    }
}

fn role(name: &str) -> Result<Roles, String> {
    let role =
        Role::named(name).ok_or_else(|| format!("its role is unknown; the roles are {}", role_names()))?;
    Ok(Roles::of(role))
}

fn role_names() -> String {
    Role::ALL.map(Role::name).join(", ")
}

fn read_name(value: &Value) -> Result<String, String> {
    let name = value.as_str().filter(|name| is_caller_name(name));
    name.map(str::to_string).ok_or_else(|| {
        format!("\"name\" is not a string of 1-{NAME_CHARACTERS_MAX} characters without control characters")
    })
}

/// Whether a name can stand in events and logs.
pub fn is_caller_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARACTERS_MAX
        && !name.chars().any(char::is_control)
}

fn read_scope(value: &Value) -> Result<WorkflowScope, String> {
    let patterns = value
        .as_array()
        .filter(|list| (1..=PATTERNS_MAX).contains(&list.len()));
    let patterns: Option<Vec<String>> = patterns.and_then(|list| {
        let texts = list.iter().map(|pattern| pattern.as_str().map(str::to_string));
        texts.collect()
    });
    patterns.and_then(WorkflowScope::new).ok_or_else(|| {
        format!("\"workflows\" is not a list of 1-{PATTERNS_MAX} workflow ids, in which * stands for any characters")
    })
}

/// The entries of a JSON object in their order, so that a message can name one by its position.
pub struct Entries(pub Vec<(String, Value)>);

impl Entries {
    /// `setting` is the name of the variable.
    pub fn parse(setting: &str, text: &str) -> Result<Vec<(String, Value)>, String> {
        match serde_json::from_str(text) {
            Ok(Entries(entries)) if entries.is_empty() => Err(format!("{setting} has no entry")),
            Ok(Entries(entries)) => Ok(entries),
            // The message of such an error would quote the text.
            Err(error) if error.is_data() => Err(format!("{setting} is not a JSON object")),
            Err(error) => Err(format!(
                "{setting} is not JSON: line {}, column {}",
                error.line(),
                error.column()
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
