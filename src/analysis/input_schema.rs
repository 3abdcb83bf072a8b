//! What a JSON Schema says about the members of a value, without validating anything. Where a schema is not simple, it is taken to
//! know every member.

use serde_json::Value;

/// Keywords beside which `properties` is not the whole truth about the members of an object.
const OTHER_SOURCES: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "not",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// The first member of a path that a schema does not know, with the ones it knows.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownMember<'a> {
    /// The number of members before it.
    pub depth: usize,
    pub known: Vec<&'a str>,
}

/// The schema of a member, if it is written in `properties`.
pub fn property_at<'a>(schema: &'a Value, members: &[String]) -> Option<&'a Value> {
    members
        .iter()
        .try_fold(schema, |schema, member| schema.get("properties")?.get(member))
}

/// The values that a member can have, if the schema lists them.
pub fn values_at(schema: &Value, members: &[String]) -> Option<Vec<Value>> {
    /// More than anybody writes conditions for.
    const VALUES_MAX: usize = 100;
    let schema = property_at(schema, members)?;
    if let Some(constant) = schema.get("const") {
        return Some(vec![constant.clone()]);
    }
    match (schema.get("enum"), schema.get("type")) {
        (Some(Value::Array(values)), _) if values.len() <= VALUES_MAX => Some(values.clone()),
        (None, Some(Value::String(name))) if name == "boolean" => Some(vec![true.into(), false.into()]),
        (_, _) => None,
    }
}

pub fn unknown_member<'a>(schema: &'a Value, members: &[String]) -> Option<UnknownMember<'a>> {
    let mut schema = schema;
    for (depth, member) in members.iter().enumerate() {
        if OTHER_SOURCES.iter().any(|keyword| schema.get(keyword).is_some()) {
            return None;
        }
        // A schema for other members is one that knows them.
        if matches!(schema.get("additionalProperties"), Some(Value::Object(_))) {
            return None;
        }
        let properties = schema.get("properties")?.as_object()?;
        match properties.get(member) {
            Some(inner) => schema = inner,
            None => {
                let known = properties.keys().map(String::as_str).collect();
                return Some(UnknownMember { depth, known });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_looked_up_in_properties() {
        let schema = json!({"properties": {"a": {"properties": {"b": {}}}, "any": {}, "ref": {"$ref": "#"}}});
        let unknown = |path: &str| {
            let members: Vec<String> = path.split('.').map(str::to_string).collect();
            unknown_member(&schema, &members).map(|found| found.depth)
        };
        assert_eq!(unknown("a.b"), None);
        assert_eq!(unknown("a.c"), Some(1));
        assert_eq!(unknown("x"), Some(0));
        // Nothing is said about what is inside.
        assert_eq!(unknown("any.x.y"), None);
        assert_eq!(unknown("a.b.c"), None);
        assert_eq!(unknown("ref.x"), None);
        let open = json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}});
        assert_eq!(unknown_member(&open, &["x".to_string()]), None);
        assert_eq!(unknown_member(&json!(true), &["x".to_string()]), None);
    }
}
