//! Shapes as TypeScript type expressions.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ir::{Extra, Field, ObjectShape, Shape, Type};

/// An expression longer than this is broken into lines.
const WIDTH: usize = 80;

/// Prints expressions and remembers the names in them, so that a file imports what it uses and nothing else.
#[derive(Debug, Default)]
pub(super) struct TypeScriptPrinter {
    names: BTreeSet<String>,
}

/// One alternative of a union.
struct Member {
    about: Option<String>,
    text: String,
}

impl TypeScriptPrinter {
    /// The import lines for a file named after `own` type, and the empty line after them.
    pub(super) fn imports_for(&self, own: &str) -> String {
        let others = self.names.iter().filter(|name| *name != own);
        let lines: String =
            others.map(|name| format!("import type {{ {name} }} from \"./{name}\";\n")).collect();
        if lines.is_empty() { lines } else { lines + "\n" }
    }

    /// A type of another file, by its name.
    pub(super) fn reference(&mut self, name: &str) -> String {
        self.names.insert(name.to_owned());
        name.to_owned()
    }

    pub(super) fn declaration(&mut self, name: &str, ty: &Type) -> String {
        let text = self.shape(&ty.shape, 0);
        let gap = if text.starts_with('\n') { "" } else { " " };
        format!("{}export type {name} ={gap}{text};\n", doc(ty.about.as_slice(), 0))
    }

    /// `indent` is that of the line the expression begins on. One that is broken into a line per alternative begins
    /// with a line break.
    fn shape(&mut self, shape: &Shape, indent: usize) -> String {
        match shape {
            Shape::Any => self.reference("JsonValue"),
            Shape::Null => "null".to_owned(),
            Shape::Boolean => "boolean".to_owned(),
            Shape::Integer | Shape::Number => "number".to_owned(),
            Shape::String => "string".to_owned(),
            Shape::Reference(name) => self.reference(name),
            Shape::List(inner) => format!("Array<{}>", self.shape(inner, indent)),
            Shape::Map(inner) => format!("{{ [key: string]: {} }}", self.shape(inner, indent)),
            Shape::Object(object) => self.object(object, indent),
            Shape::Literals(_) | Shape::Union { .. } | Shape::Nullable(_) => self.union(shape, indent),
        }
    }

    fn object(&mut self, object: &ObjectShape, indent: usize) -> String {
        let mut fields: Vec<(String, String)> = object
            .fields
            .iter()
            .map(|field| (field_doc(field, indent + 2), self.field(field, indent + 2)))
            .collect();
        if object.extra == Extra::Kept {
            // Undefined, because an index signature also covers the optional fields beside it.
            let values = self.reference("JsonValue");
            fields.push((String::new(), format!("[key: string]: {values} | undefined")));
        }
        if fields.is_empty() {
            // `{}` would be any value but null.
            return "Record<string, never>".to_owned();
        }
        let line = fields.iter().map(|(_, field)| field.as_str()).collect::<Vec<_>>().join("; ");
        let documented = fields.iter().any(|(doc, _)| !doc.is_empty());
        // A named object keeps a line per field however short it is.
        if indent > 0 && !documented && fits(&line) {
            return format!("{{ {line} }}");
        }
        let margin = " ".repeat(indent);
        let lines: String = fields.iter().map(|(doc, field)| format!("{doc}{margin}  {field};\n")).collect();
        format!("{{\n{lines}{margin}}}")
    }

    fn field(&mut self, field: &Field, indent: usize) -> String {
        let optional = if field.optional { "?" } else { "" };
        let text = self.shape(&field.shape, indent);
        let gap = if text.starts_with('\n') { "" } else { " " };
        format!("{}{optional}:{gap}{text}", property(&field.name))
    }

    fn union(&mut self, shape: &Shape, indent: usize) -> String {
        let mut members = Vec::new();
        self.members(shape, indent + 4, &mut members);
        if members.iter().any(|member| member.text.starts_with('"')) {
            // A plain `string` would swallow the literals, and with them what an editor can offer.
            for member in members.iter_mut().filter(|member| member.text == "string") {
                member.text = "(string & {})".to_owned();
            }
        }
        let line = members.iter().map(|member| member.text.as_str()).collect::<Vec<_>>().join(" | ");
        let documented = members.iter().any(|member| member.about.is_some());
        if members.len() == 1 || (!documented && fits(&line)) {
            return line;
        }
        let margin = " ".repeat(indent);
        members
            .iter()
            .map(|member| {
                format!("\n{}{margin}  | {}", doc(member.about.as_slice(), indent + 2), member.text)
            })
            .collect()
    }

    /// The alternatives of a shape, those of a union inside it included.
    fn members(&mut self, shape: &Shape, indent: usize, members: &mut Vec<Member>) {
        match shape {
            Shape::Nullable(inner) => {
                self.members(inner, indent, members);
                members.push(Member { about: None, text: "null".to_owned() });
            }
            Shape::Literals(literals) => members.extend(
                literals
                    .iter()
                    .map(|literal| Member { about: literal.about.clone(), text: quoted(&literal.value) }),
            ),
            Shape::Union { variants, .. } => {
                for variant in variants {
                    let first = members.len();
                    self.members(&variant.shape, indent, members);
                    if let [member] = &mut members[first..] {
                        member.about = variant.about.clone().or(member.about.take());
                    }
                }
            }
            other => members.push(Member { about: None, text: self.shape(other, indent) }),
        }
    }
}

fn fits(line: &str) -> bool {
    line.len() <= WIDTH && !line.contains('\n')
}

/// A doc comment of these lines at this indent, or nothing.
pub(super) fn doc(parts: &[impl AsRef<str>], indent: usize) -> String {
    let margin = " ".repeat(indent);
    let text: Vec<String> = parts.iter().map(|part| part.as_ref().replace("*/", "*\\/")).collect();
    let lines: Vec<&str> = text.iter().flat_map(|part| part.lines()).map(str::trim).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        lines => {
            let rows: String =
                lines.iter().map(|line| format!("{margin} * {line}").trim_end().to_owned() + "\n").collect();
            format!("{margin}/**\n{rows}{margin} */\n")
        }
    }
}

fn field_doc(field: &Field, indent: usize) -> String {
    let default = field.default.as_ref().filter(|_| field.optional);
    let tag = default.map(|default| format!("@default {default}"));
    let parts: Vec<&str> = field.about.as_deref().into_iter().chain(tag.as_deref()).collect();
    doc(&parts, indent)
}

fn property(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit()) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use crate::ir::Literal;

    use super::*;

    fn check(shape: Shape) -> String {
        let mut printer = TypeScriptPrinter::default();
        let body = printer.declaration("Sample", &Type { about: None, shape });
        printer.imports_for("Sample") + &body
    }

    fn field(name: &str, shape: Shape) -> Field {
        Field { name: name.to_owned(), about: None, shape, optional: false, default: None }
    }

    fn optional(field: Field) -> Field {
        Field { optional: true, ..field }
    }

    fn object(fields: Vec<Field>) -> Shape {
        Shape::Object(ObjectShape { fields, extra: Extra::Ignored })
    }

    fn reference(name: &str) -> Shape {
        Shape::Reference(name.to_owned())
    }

    fn nullable(shape: Shape) -> Shape {
        Shape::Nullable(Box::new(shape))
    }

    fn literals(values: &[&str]) -> Shape {
        let literal = |value: &&str| Literal { value: (*value).to_owned(), about: None };
        Shape::Literals(values.iter().map(literal).collect())
    }

    fn union(variants: Vec<(Option<&str>, Shape)>) -> Shape {
        let variant = |(about, shape): (Option<&str>, Shape)| Type { about: about.map(str::to_owned), shape };
        Shape::Union { tag: None, variants: variants.into_iter().map(variant).collect() }
    }

    #[test]
    fn an_object_has_a_line_per_field() {
        let about = Some("Ends with */ here.\nSecond line.".to_owned());
        let shape = object(vec![
            Field { about, ..field("id", reference("SampleId")) },
            field("name", nullable(Shape::String)),
            optional(field("parent", nullable(reference("Sample")))),
            optional(Field { default: Some(true.into()), ..field("wait", Shape::Boolean) }),
            optional(field("data", Shape::List(Box::new(Shape::Any)))),
            field("content-type", Shape::String),
        ]);
        insta::assert_snapshot!(check(shape), @r#"
        import type { JsonValue } from "./JsonValue";
        import type { SampleId } from "./SampleId";

        export type Sample = {
          /**
           * Ends with *\/ here.
           * Second line.
           */
          id: SampleId;
          name: string | null;
          parent?: Sample | null;
          /** @default true */
          wait?: boolean;
          data?: Array<JsonValue>;
          "content-type": string;
        };
        "#);
    }

    #[test]
    fn an_object_without_fields_has_none() {
        insta::assert_snapshot!(check(object(Vec::new())), @"export type Sample = Record<string, never>;");
    }

    #[test]
    fn fields_beyond_the_named_ones_are_json() {
        let fields = vec![optional(field("model", Shape::String))];
        insta::assert_snapshot!(check(Shape::Object(ObjectShape { fields, extra: Extra::Kept })), @r#"
        import type { JsonValue } from "./JsonValue";

        export type Sample = {
          model?: string;
          [key: string]: JsonValue | undefined;
        };
        "#);
    }

    #[test]
    fn a_tagged_union_has_a_variant_per_line() {
        let path = Field { about: Some("Absolute.".to_owned()), ..field("path", Shape::String) };
        let shape = union(vec![
            (None, object(vec![field("type", literals(&["text"])), field("text", Shape::String)])),
            (Some("Kept on disk."), object(vec![field("type", literals(&["image"])), path])),
            (None, union(vec![(None, reference("Other")), (None, Shape::Null)])),
        ]);
        insta::assert_snapshot!(check(shape), @r#"
        import type { Other } from "./Other";

        export type Sample =
          | { type: "text"; text: string }
          /** Kept on disk. */
          | {
              type: "image";
              /** Absolute. */
              path: string;
            }
          | Other
          | null;
        "#);
    }

    #[test]
    fn an_open_enum_keeps_its_known_words() {
        let shape = union(vec![(None, literals(&["fast", "flex"])), (None, Shape::String)]);
        insta::assert_snapshot!(check(shape), @r#"export type Sample = "fast" | "flex" | (string & {});"#);
    }

    #[test]
    fn a_map_is_indexed_by_strings() {
        let shape = Shape::Map(Box::new(nullable(reference("Entry"))));
        insta::assert_snapshot!(check(shape), @r#"
        import type { Entry } from "./Entry";

        export type Sample = { [key: string]: Entry | null };
        "#);
    }
}
