//! Slots: places in the page that show a value of the report, filled here at first and by the page's script from then on.
//!
//! A slot's element says which value it shows (`data-of`, a path of keys with dots between) and how that is written
//! (`data-as`). A list's element says which list its rows are of (`data-rows`) and begins with a template of a row, whose
//! slots are empty. So what the page shows is said once, here.

use linerate_lab::quantity::{age, bytes, count, per_second, rate, share, span};
use linerate_lab::report::html::escape;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// What stands where a value is not known.
const UNKNOWN: &str = "–";

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum As {
    /// As it is.
    Text,
    /// Bits per second.
    Rate,
    /// A number of bytes.
    Bytes,
    /// A number with its thousands apart.
    Count,
    /// How often in a second.
    PerSecond,
    /// A time in seconds, as finely as it is known.
    Span,
    /// A time in seconds, in its two largest units.
    Age,
    /// A share of a whole.
    Share,
}

impl As {
    /// All of them.
    pub const ALL: [As; 8] =
        [As::Text, As::Rate, As::Bytes, As::Count, As::PerSecond, As::Span, As::Age, As::Share];

    /// Its name in the page.
    pub const fn name(self) -> &'static str {
        match self {
            As::Text => "text",
            As::Rate => "rate",
            As::Bytes => "bytes",
            As::Count => "count",
            As::PerSecond => "per_second",
            As::Span => "span",
            As::Age => "age",
            As::Share => "share",
        }
    }

    /// The value as text.
    pub fn write(self, value: &Value) -> String {
        let seconds = || value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let written = match self {
            As::Text => value.as_str().map(str::to_owned),
            As::Rate => value.as_f64().map(rate),
            As::Bytes => value.as_u64().map(bytes),
            As::Count => value.as_u64().map(count),
            As::PerSecond => value.as_f64().map(per_second),
            As::Span => seconds().map(span),
            As::Age => seconds().map(age),
            As::Share => value.as_f64().map(share),
        };
        written.unwrap_or_else(|| UNKNOWN.to_owned())
    }
}

/// What slots are filled from: the report or a row of a list; `None` in a template.
pub type Data<'a> = Option<&'a Value>;

/// The value at a path.
pub fn at<'a>(data: Data<'a>, path: &str) -> Data<'a> {
    path.split('.').try_fold(data?, |value, key| value.get(key))
}

/// A slot of the element `tag` with further `attributes`, which begin with a blank.
pub fn slot(out: &mut String, tag: &str, attributes: &str, path: &str, how: As, data: Data<'_>) {
    let text = at(data, path).map_or(String::new(), |value| escape(&how.write(value)));
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<{tag}{attributes} data-of=\"{}\" data-as=\"{}\">{text}</{tag}>",
        escape(path),
        how.name()
    );
}

/// A gauge of one value as a part of another.
pub fn meter(out: &mut String, part: &str, whole: &str, data: Data<'_>) {
    let number = |path| at(data, path).and_then(Value::as_u64).unwrap_or_default();
    let (value, max) = (number(part), number(whole));
    let _ = write!(
        out,
        "<meter aria-label=\"filled\" data-of=\"{}\" data-max=\"{}\" data-as=\"meter\" value=\"{value}\" max=\"{}\"></meter>",
        escape(part),
        escape(whole),
        max.max(1),
    );
}

/// A bar in parts: the shares of a whole at a path, in the order of their names; each part has a colour by its place in
/// `names`.
pub fn bar(out: &mut String, path: &str, names: &[&str], data: Data<'_>) {
    let _ =
        write!(out, "<svg class=\"bar\" aria-hidden=\"true\" data-of=\"{}\" data-as=\"bar\">", escape(path));
    let mut left = 0.0;
    for (colour, name) in names.iter().enumerate() {
        let width = at(data, path).and_then(|shares| shares.get(*name)).and_then(Value::as_f64);
        let width = width.unwrap_or_default() * 100.0;
        let _ = write!(
            out,
            "<rect class=\"c{colour}\" data-name=\"{}\" x=\"{left:.2}%\" width=\"{width:.2}%\" height=\"100%\"/>",
            escape(name)
        );
        left += width;
    }
    out.push_str("</svg>");
}

/// The rows of the list at `path`, behind their template, as content of the element `data-rows` stands at. A map is a list
/// of `name` and `value`, the largest first. The outermost element of a row has the attribute `data-row`.
pub fn rows(out: &mut String, path: &str, data: Data<'_>, row: fn(&mut String, Data<'_>)) {
    out.push_str("<template>");
    row(out, None);
    out.push_str("</template>");
    match at(data, path) {
        Some(Value::Array(list)) => list.iter().for_each(|value| row(out, Some(value))),
        Some(Value::Object(map)) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            // Stable, so that the equal ones stay in the order of their names.
            entries.sort_by_key(|(_, value)| std::cmp::Reverse(value.as_u64()));
            for (name, value) in entries {
                row(out, Some(&serde_json::json!({"name": name, "value": value})));
            }
        }
        _ => {}
    }
}

/// Attributes of an element that is there only while the value at `path` is something, or only while it is nothing:
/// 0, no text, an empty list.
pub fn shown(path: &str, while_something: bool, data: Data<'_>) -> String {
    let name = if while_something { "some" } else { "none" };
    let hidden = if is_something(at(data, path)) == while_something { "" } else { " hidden" };
    format!(" data-{name}=\"{}\"{hidden}", escape(path))
}

fn is_something(value: Data<'_>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is)) => *is,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_found_written_and_escaped() {
        let report = json!({"a": {"b": 2048}, "name": "<b>\"x\"", "rtt": null});
        let check = |path: &str, how: As, expected: &str| {
            let mut out = String::new();
            slot(&mut out, "td", " class=\"n\"", path, how, Some(&report));
            let tag = format!("<td class=\"n\" data-of=\"{path}\" data-as=\"{}\">", how.name());
            assert_eq!(out, format!("{tag}{expected}</td>"));
        };
        check("a.b", As::Bytes, "2 KiB");
        check("a.b", As::Text, UNKNOWN);
        check("name", As::Text, "&lt;b&gt;&quot;x&quot;");
        check("rtt", As::Span, UNKNOWN);
        check("a.c", As::Count, "");
    }

    #[test]
    fn a_list_begins_with_its_template() {
        let row = |out: &mut String, data: Data<'_>| slot(out, "li", " data-row", "name", As::Text, data);
        let rows = |report: Value| {
            let mut out = String::new();
            rows(&mut out, "list", Some(&report), row);
            let (template, rest) = out.split_once("</template>").unwrap();
            assert!(template.contains("<li data-row") && template.ends_with("></li>"), "{template}");
            rest.split("</li>").filter_map(|row| row.rsplit('>').next()).collect::<String>()
        };
        assert_eq!(rows(json!({"list": [{"name": "x"}, {"name": "y"}]})), "xy");
        assert_eq!(rows(json!({"list": {"a": 1, "b": 3, "c": 1}})), "bac");
        assert_eq!(rows(json!({})), "");
    }

    #[test]
    fn what_is_nothing_is_hidden() {
        for (value, is) in [
            (json!(0), false),
            (json!(0.5), true),
            (json!(""), false),
            (json!([]), false),
            (json!([0]), true),
            (json!(null), false),
            (json!({"a": 1}), true),
        ] {
            let report = json!({ "a": value });
            assert_eq!(!shown("a", true, Some(&report)).ends_with("hidden"), is, "{report}");
            assert_eq!(shown("a", false, Some(&report)).ends_with("hidden"), is, "{report}");
        }
    }
}
