//! All keys that a chip file lacks, where reading it ends at the first.
//!
//! Which keys are needed is what the JSON schema says, which comes of the same types as the reading: there is no second list.

use super::{SocError, json_schema};
use serde_json::{Map, Value};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// What tables lack, in the order of the file; `None` where nothing is missing.
pub(super) fn all(text: &str) -> Option<SocError> {
    let root = DeTable::parse(text).ok()?;
    let schema = json_schema();
    let schema = schema.as_value();
    let needed = Needed { definitions: schema.get("$defs")?.as_object()? };
    let mut lacks = Vec::new();
    needed.of_table(schema, "", &root.span(), root.get_ref(), &mut lacks);
    lacks.sort_by_key(|lack| lack.span.start);
    let (first, rest) = lacks.split_first()?;
    let mut what = first.text();
    for lack in rest {
        let place = SocError::at(text, &lack.span, "");
        what += &format!("; line {}: {}", place.line, lack.text());
    }
    Some(SocError::at(text, &first.span, what))
}

/// What one table lacks.
struct Lack {
    table: String,
    span: Range<usize>,
    keys: Vec<String>,
}

impl Lack {
    fn text(&self) -> String {
        let fields = if self.keys.len() == 1 { "field" } else { "fields" };
        let of = if self.table.is_empty() { String::new() } else { format!(" of [{}]", self.table) };
        format!("missing {fields} {}{of}", self.keys.join(", "))
    }
}

/// The parts of the schema by name.
struct Needed<'a> {
    definitions: &'a Map<String, Value>,
}

impl<'a> Needed<'a> {
    /// The schema of an object behind references and what may be left out; `None` where it is none.
    fn object(&self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return self.object(self.definitions.get(name.strip_prefix("#/$defs/")?)?);
        }
        if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
            return any.iter().find_map(|one| self.object(one));
        }
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        (is_object || schema.get("type").and_then(Value::as_str) == Some("array")).then_some(schema)
    }

    fn required(schema: &'a Value) -> impl Iterator<Item = &'a str> {
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn of_table(
        &self,
        schema: &'a Value,
        path: &str,
        span: &Range<usize>,
        table: &DeTable<'_>,
        lacks: &mut Vec<Lack>,
    ) {
        let properties = schema.get("properties");
        let own = |key: &str| properties.and_then(|properties| properties.get(key));
        let missing = Self::required(schema).filter(|key| !table.contains_key(*key));
        let keys: Vec<String> = missing.map(|key| self.named(key, own(key))).collect();
        if !keys.is_empty() {
            lacks.push(Lack { table: path.to_owned(), span: span.clone(), keys });
        }
        for (name, value) in table {
            let key: &str = name.get_ref();
            let Some(inner) = own(key).or_else(|| schema.get("additionalProperties")) else { continue };
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            self.of_value(inner, &path, &value.span(), value.get_ref(), lacks);
        }
    }

    fn of_value(
        &self,
        schema: &'a Value,
        path: &str,
        span: &Range<usize>,
        value: &DeValue<'_>,
        lacks: &mut Vec<Lack>,
    ) {
        let Some(schema) = self.object(schema) else { return };
        match value {
            DeValue::Table(table) => self.of_table(schema, path, span, table, lacks),
            DeValue::Array(values) => {
                let Some(items) = schema.get("items") else { return };
                for value in values {
                    self.of_value(items, path, &value.span(), value.get_ref(), lacks);
                }
            }
            _ => {}
        }
    }

    /// A key, with those that its table will need.
    fn named(&self, key: &str, schema: Option<&'a Value>) -> String {
        let inner: Vec<String> = schema
            .and_then(|schema| self.object(schema))
            .map(|schema| Self::required(schema).map(|key| format!("`{key}`")).collect())
            .unwrap_or_default();
        if inner.is_empty() { format!("`{key}`") } else { format!("`{key}` (with {})", inner.join(", ")) }
    }
}
