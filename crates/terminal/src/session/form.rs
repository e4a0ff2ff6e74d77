//! Questions with fields: of the model, and of MCP servers.

use serde_json::{Map, Value, json};

use super::facts::text;
use crate::rows::{Ink, ScreenRow};
use crate::safe::{escaped, one_line};

#[derive(Debug, Clone)]
pub(super) struct Form {
    kind: FormKind,
    title: String,
    fields: Vec<FormField>,
    at: usize,
    answers: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormKind {
    UserInput,
    Elicitation,
}

#[derive(Debug, Clone)]
struct FormField {
    name: String,
    title: String,
    about: String,
    is_required: bool,
    default: Option<Value>,
    input: FieldInput,
}

#[derive(Debug, Clone)]
enum FieldInput {
    Text {
        least: usize,
        most: usize,
        is_secret: bool,
    },
    Number {
        is_whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    YesNo,
    /// Value, label and what it means.
    Choice {
        options: Vec<(String, String, String)>,
        takes_many: bool,
        takes_other: bool,
    },
}

impl Form {
    pub(super) fn of_user_input(params: &Value) -> Self {
        let field = |question: &Value| {
            let options: Vec<(String, String, String)> = question["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|option| {
                    let label = text(&option["label"]);
                    (label.clone(), label, text(&option["description"]))
                })
                .collect();
            let is_secret = question["isSecret"].as_bool().unwrap_or_default();
            FormField {
                name: text(&question["id"]),
                title: text(&question["header"]),
                about: text(&question["question"]),
                is_required: true,
                default: None,
                input: match options.is_empty() {
                    true => FieldInput::Text { least: 0, most: usize::MAX, is_secret },
                    false => {
                        let takes_other = question["isOther"].as_bool().unwrap_or_default();
                        FieldInput::Choice { options, takes_many: false, takes_other }
                    }
                },
            }
        };
        let fields = params["questions"].as_array().into_iter().flatten().map(field).collect();
        Self {
            kind: FormKind::UserInput,
            title: "The agent asks".to_owned(),
            fields,
            at: 0,
            answers: Map::new(),
        }
    }

    pub(super) fn of_elicitation(params: &Value) -> Self {
        let schema = &params["requestedSchema"];
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let field = |(name, property): (&String, &Value)| FormField {
            name: name.clone(),
            title: property["title"].as_str().unwrap_or(name).to_owned(),
            about: text(&property["description"]),
            is_required: required.contains(&name.as_str()),
            default: property.get("default").filter(|value| !value.is_null()).cloned(),
            input: FieldInput::of_schema(property),
        };
        let fields = schema["properties"].as_object().into_iter().flatten().map(field).collect();
        let title = format!("{} asks: {}", text(&params["serverName"]), text(&params["message"]));
        Self { kind: FormKind::Elicitation, title, fields, at: 0, answers: Map::new() }
    }

    /// The title and the first field.
    pub(super) fn begin(&self) -> Vec<ScreenRow> {
        let mut shown =
            vec![ScreenRow::new(Ink::Careful, "? ").with(Ink::Strong, one_line(&self.title)).hanging(2)];
        shown.extend(self.field_rows());
        shown
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(
            self.fields.get(self.at),
            Some(FormField { input: FieldInput::Text { is_secret: true, .. }, .. })
        )
    }

    pub(super) fn hint(&self) -> String {
        let Some(field) = self.fields.get(self.at) else {
            return "Enter agrees; Esc does not answer".to_owned();
        };
        let kind = match &field.input {
            FieldInput::Choice { takes_many: true, .. } => "numbers, with commas between",
            FieldInput::Choice { takes_other: true, .. } => "a number, or words of your own",
            FieldInput::Choice { .. } => "a number",
            FieldInput::YesNo => "y or n",
            FieldInput::Number { .. } => "a number",
            FieldInput::Text { .. } => "text",
        };
        let skip = match (&field.default, field.is_required) {
            (Some(default), _) => format!("; Enter alone: {}", escaped(&plain(default))),
            (None, false) => "; Enter alone leaves it out".to_owned(),
            (None, true) => String::new(),
        };
        format!("{} of {}: {kind}{skip}; Esc does not answer", self.at + 1, self.fields.len())
    }

    fn field_rows(&self) -> Vec<ScreenRow> {
        let Some(field) = self.fields.get(self.at) else { return Vec::new() };
        let title = format!("  {}", one_line(&field.title));
        let about =
            if field.about.is_empty() { String::new() } else { format!(": {}", one_line(&field.about)) };
        let mut shown = vec![ScreenRow::new(Ink::Strong, title).with(Ink::Plain, about).hanging(2)];
        if let FieldInput::Choice { options, .. } = &field.input {
            for (number, (_, label, about)) in options.iter().enumerate() {
                let about = if about.is_empty() { String::new() } else { format!("  {}", one_line(about)) };
                let row = ScreenRow::new(Ink::Busy, format!("    {} ", number + 1))
                    .with(Ink::Plain, one_line(label));
                shown.push(row.with(Ink::Faint, about).hanging(6));
            }
        }
        shown
    }

    /// Takes one answer: its echo, and the rows of the next field. No more rows when the form is done.
    pub(super) fn enter(&mut self, typed: &str) -> Result<(String, Vec<ScreenRow>), String> {
        let Some(field) = self.fields.get(self.at) else { return Ok(("agreed".to_owned(), Vec::new())) };
        let value = match (typed.is_empty(), &field.default, field.is_required) {
            (true, Some(default), _) => Some(default.clone()),
            (true, None, true) => return Err("an answer is needed here".to_owned()),
            (true, None, false) => None,
            (false, _, _) => Some(field.input.read(typed)?),
        };
        let echo = match (&value, self.is_secret()) {
            (Some(_), true) => "***".to_owned(),
            (Some(value), false) => escaped(&plain(value)).replace('\n', " "),
            (None, _) => "left out".to_owned(),
        };
        if let Some(value) = value {
            self.answers.insert(field.name.clone(), value);
        }
        self.at += 1;
        Ok((echo, self.field_rows()))
    }

    pub(super) fn reply(&self) -> Value {
        match self.kind {
            FormKind::Elicitation => json!({ "action": "accept", "content": self.answers, "_meta": null }),
            FormKind::UserInput => {
                let answers = self.answers.iter().map(|(name, value)| {
                    let answers = match value {
                        Value::Array(values) => values.iter().map(plain).collect(),
                        value => vec![plain(value)],
                    };
                    (name.clone(), json!({ "answers": answers }))
                });
                json!({ "answers": answers.collect::<Map<String, Value>>() })
            }
        }
    }

    pub(super) fn declined(&self) -> Value {
        match self.kind {
            FormKind::Elicitation => json!({ "action": "decline", "content": null, "_meta": null }),
            FormKind::UserInput => json!({ "answers": {} }),
        }
    }
}

impl FieldInput {
    fn of_schema(schema: &Value) -> Self {
        let size = |name: &str| schema[name].as_u64().and_then(|size| usize::try_from(size).ok());
        let titled = |list: &Value| -> Vec<(String, String, String)> {
            let option = |option: &Value| (text(&option["const"]), text(&option["title"]), String::new());
            list.as_array().into_iter().flatten().map(option).collect()
        };
        let bare = |list: &Value, names: &Value| -> Vec<(String, String, String)> {
            let values = list.as_array().into_iter().flatten().map(text).enumerate();
            let option = |(number, value): (usize, String)| {
                let label = names[number].as_str().unwrap_or(&value).to_owned();
                (value, label, String::new())
            };
            values.map(option).collect()
        };
        let options = if schema["oneOf"].is_array() {
            titled(&schema["oneOf"])
        } else if schema["enum"].is_array() {
            bare(&schema["enum"], &schema["enumNames"])
        } else if schema["items"]["anyOf"].is_array() {
            titled(&schema["items"]["anyOf"])
        } else {
            bare(&schema["items"]["enum"], &Value::Null)
        };
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Self::YesNo,
            "array" => Self::Choice { options, takes_many: true, takes_other: false },
            "number" | "integer" => Self::Number {
                is_whole: schema["type"] == "integer",
                least: schema["minimum"].as_f64(),
                most: schema["maximum"].as_f64(),
            },
            _ if !options.is_empty() => Self::Choice { options, takes_many: false, takes_other: false },
            _ => Self::Text {
                least: size("minLength").unwrap_or(0),
                most: size("maxLength").unwrap_or(usize::MAX),
                is_secret: false,
            },
        }
    }

    fn read(&self, typed: &str) -> Result<Value, String> {
        match self {
            Self::Text { least, most, .. } => match typed.chars().count() {
                count if count < *least => Err(format!("at least {least} characters are needed")),
                count if count > *most => Err(format!("at most {most} characters are taken")),
                _ => Ok(typed.into()),
            },
            Self::YesNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Ok(true.into()),
                "n" | "no" | "false" | "0" => Ok(false.into()),
                _ => Err("y or n?".to_owned()),
            },
            Self::Number { is_whole, least, most } => {
                let number: f64 = typed.parse().map_err(|_| "that is no number".to_owned())?;
                if !number.is_finite()
                    || least.is_some_and(|least| number < least)
                    || most.is_some_and(|most| number > most)
                {
                    return Err("that number is not among those taken".to_owned());
                }
                match (is_whole, typed.parse::<i64>()) {
                    (true, Ok(whole)) => Ok(whole.into()),
                    (true, Err(_)) => Err("a whole number is needed".to_owned()),
                    (false, _) => Ok(number.into()),
                }
            }
            Self::Choice { options, takes_many, takes_other } => {
                let find = |word: &str| {
                    let numbered =
                        word.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
                    let named = || options.iter().find(|(_, label, _)| label.eq_ignore_ascii_case(word));
                    numbered.or_else(named).map(|(value, _, _)| Value::from(value.as_str()))
                };
                if *takes_many {
                    let words = typed.split(',').map(str::trim).filter(|word| !word.is_empty());
                    let found: Option<Vec<Value>> = words.map(find).collect();
                    return found
                        .map(Value::Array)
                        .ok_or_else(|| "one of these is not in the list".to_owned());
                }
                let other = takes_other.then(|| Value::from(typed));
                find(typed).or(other).ok_or_else(|| "that is not in the list".to_owned())
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
