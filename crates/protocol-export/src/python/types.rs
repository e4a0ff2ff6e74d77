//! Every named type as a model or an alias, each after the ones it mentions.

use std::collections::{BTreeMap, BTreeSet};

use super::shapes::{Keyed, constant, default_of, distinguished, is_record, keyed, open_values, values};
use super::{layout, names};
use crate::ir::{Extra, Field, Literal, ObjectShape, Shape, Type};

/// The types as declarations, and the names they declare.
pub(super) struct Declarations {
    pub(super) text: String,
    pub(super) names: BTreeSet<String>,
    /// The names that are classes; the others are unions, enums and plain values.
    pub(super) classes: BTreeSet<String>,
}

pub(super) fn declarations(types: &BTreeMap<String, Type>) -> Declarations {
    let mut printer = PythonPrinter {
        types,
        distinguished: distinguished(types),
        visited: BTreeSet::new(),
        declared: BTreeSet::new(),
        classes: BTreeSet::new(),
        text: String::new(),
    };
    types.keys().for_each(|name| printer.visit(name));
    Declarations { text: printer.text, names: printer.declared, classes: printer.classes }
}

struct PythonPrinter<'a> {
    types: &'a BTreeMap<String, Type>,
    /// The arms of unions without a tag, and the enums that tell them apart.
    distinguished: BTreeSet<String>,
    visited: BTreeSet<String>,
    declared: BTreeSet<String>,
    classes: BTreeSet<String>,
    text: String,
}

/// A class about to be printed.
struct Class<'a> {
    name: &'a str,
    base: &'a str,
    about: Option<&'a str>,
    fields: &'a [Field],
}

/// A tagged union about to be printed.
struct TaggedUnion<'a> {
    name: &'a str,
    about: Option<&'a str>,
    tag: &'a str,
    variants: &'a [Type],
}

impl PythonPrinter<'_> {
    /// Declares a type after the ones it mentions. Where types mention each other in a circle, one has to be first.
    fn visit(&mut self, name: &str) {
        let Some(ty) = self.types.get(name) else { return };
        if !self.visited.insert(name.to_owned()) {
            return;
        }
        let mut mentioned = Vec::new();
        ty.shape.references(&mut mentioned);
        mentioned.iter().for_each(|name| self.visit(name));
        self.declare(name, ty);
    }

    fn declare(&mut self, name: &str, ty: &Type) {
        let about = ty.about.as_deref();
        match &ty.shape {
            Shape::Object(object) => {
                match object.fields.iter().find(|field| constant(&field.shape).is_some()) {
                    // A union of one, which may have more arms one day.
                    Some(tag) => {
                        self.tagged(&TaggedUnion {
                            name,
                            about,
                            tag: &tag.name,
                            variants: std::slice::from_ref(ty),
                        });
                    }
                    None => self.class(&Class {
                        name,
                        base: self.base(name, object),
                        about,
                        fields: &object.fields,
                    }),
                }
            }
            Shape::Union { tag: Some(tag), variants } => {
                self.tagged(&TaggedUnion { name, about, tag, variants });
            }
            Shape::Union { tag: None, variants } => self.untagged(name, about, variants),
            Shape::Literals(values) => self.literals(name, about, values),
            shape => {
                let annotation = self.annotation(shape, name);
                self.alias(name, about, &format!("{name}: TypeAlias = {annotation}\n"));
            }
        }
    }

    fn base(&self, name: &str, object: &ObjectShape) -> &'static str {
        if object.extra == Extra::Refused && self.distinguished.contains(name) {
            "ClosedModel"
        } else {
            "WireModel"
        }
    }

    fn class(&mut self, class: &Class<'_>) {
        let mut attributes = Vec::new();
        let mut body = String::new();
        for field in class.fields {
            let attribute = names::attribute(&field.name, &attributes);
            body += &self.field(class.name, &attribute, field);
            attributes.push(attribute);
        }
        let mut text = format!("class {}({}):\n", class.name, class.base);
        if let Some(about) = class.about {
            text += &layout::docstring(4, about);
            text += if body.is_empty() { "" } else { "\n" };
        } else if body.is_empty() {
            body = "    pass\n".to_owned();
        }
        self.classes.insert(class.name.to_owned());
        self.push(class.name, &(text + &body));
    }

    fn field(&mut self, owner: &str, attribute: &str, field: &Field) -> String {
        let mut notes = Vec::new();
        let (mut annotation, mut default) = match constant(&field.shape).map(layout::string) {
            Some(value) => (format!("Literal[{value}]"), format!(" = {value}")),
            None => {
                let name = format!("{owner}{}", names::pascal(&field.name));
                (self.annotation(&field.shape, &name), String::new())
            }
        };
        if let Some(value) = &field.default {
            default = default_of(&annotation, value);
        } else if field.optional {
            " = None".clone_into(&mut default);
            if !self.may_be_null(&field.shape) {
                annotation += " | None";
                notes.push("NOT_NULL".to_owned());
            }
        }
        if self.is_early(&field.shape) {
            annotation = format!("\"{annotation}\"");
        }
        if names::camel(attribute) != field.name {
            notes.push(format!("wire({})", layout::string(&field.name)));
        }
        let line = if notes.is_empty() {
            format!("    {attribute}: {annotation}{default}\n")
        } else {
            notes.insert(0, annotation);
            layout::subscript(4, &format!("{attribute}: Annotated"), &notes, &default)
        };
        line + &field.about.as_deref().map_or(String::new(), |about| layout::docstring(4, about))
    }

    fn tagged(&mut self, union: &TaggedUnion<'_>) {
        let mut members = Vec::new();
        for variant in union.variants {
            let Some(value) = variant.shape.constant(union.tag) else { continue };
            let name = self.free_name(format!("{}{}", union.name, names::pascal(value)));
            let about = variant.about.as_deref().filter(|_| union.variants.len() > 1);
            match &variant.shape {
                Shape::Union { tag: Some(tag), variants } => {
                    self.tagged(&TaggedUnion { name: &name, about, tag, variants });
                }
                Shape::Object(object) => {
                    self.class(&Class { name: &name, base: "Variant", about, fields: &object.fields });
                }
                _ => continue,
            }
            members.push(name);
        }
        let unknown = self.free_name(format!("Unknown{}", union.name));
        let fields = unknown_fields(union);
        let about = format!("A `{}` that this version does not know.", union.tag);
        self.class(&Class { name: &unknown, base: "UnknownVariant", about: Some(&about), fields: &fields });
        members.push(unknown);
        let tagged = format!("Tagged({})", layout::string(union.tag));
        self.alias(union.name, union.about, &layout::alias(union.name, "Annotated", &members, &[&tagged]));
    }

    fn untagged(&mut self, name: &str, about: Option<&str>, variants: &[Type]) {
        if let Some(values) = open_values(variants) {
            return self.literals(name, about, &values);
        }
        if let Some(keyed) = keyed(variants) {
            return self.keyed(name, about, variants, &keyed);
        }
        let members: Vec<String> = variants
            .iter()
            .enumerate()
            .map(|(at, variant)| {
                let hint = match &variant.shape {
                    Shape::Object(ObjectShape { fields, .. }) if !fields.is_empty() => {
                        names::pascal(&fields[0].name)
                    }
                    _ => format!("Arm{}", at + 1),
                };
                self.annotation(&variant.shape, &format!("{name}{hint}"))
            })
            .collect();
        let text = if variants.iter().any(|variant| is_record(&variant.shape)) {
            layout::alias(name, "Annotated", &members, &["FIRST_MATCH"])
        } else {
            format!("{name}: TypeAlias = {}\n", members.join(" | "))
        };
        self.alias(name, about, &text);
    }

    fn keyed(&mut self, name: &str, about: Option<&str>, variants: &[Type], keyed: &[Keyed<'_>]) {
        let values: Vec<Literal> =
            variants.iter().flat_map(|variant| values(&variant.shape)).cloned().collect();
        let mut members = vec!["str".to_owned()];
        if !values.is_empty() {
            members = vec![self.free_name(format!("{name}Name"))];
            self.literals(&members[0], None, &values);
        }
        for Keyed { about, field } in keyed {
            let arm = self.free_name(format!("{name}{}", names::pascal(&field.name)));
            let mut field = (*field).clone();
            if let Shape::Object(object) = &field.shape {
                let body = self.free_name(format!("{arm}Body"));
                self.class(&Class { name: &body, base: "WireModel", about: None, fields: &object.fields });
                field.shape = Shape::Reference(body);
            }
            self.class(&Class { name: &arm, base: "WireModel", about: *about, fields: &[field] });
            members.push(arm);
        }
        let unknown = self.free_name(format!("Unknown{name}"));
        let says = "A key that this version does not know.";
        self.class(&Class { name: &unknown, base: "UnknownVariant", about: Some(says), fields: &[] });
        members.push(unknown);
        self.alias(name, about, &layout::alias(name, "Annotated", &members, &["Keyed()"]));
    }

    fn literals(&mut self, name: &str, about: Option<&str>, values: &[Literal]) {
        let texts: Vec<String> = values.iter().map(|literal| layout::string(&literal.value)).collect();
        let text = layout::literals(name, !self.distinguished.contains(name), &texts);
        let meanings: Vec<String> = values
            .iter()
            .filter_map(|literal| Some(format!("`{}`: {}", literal.value, literal.about.as_deref()?)))
            .collect();
        let about = about.into_iter().map(str::to_owned).chain(meanings).collect::<Vec<_>>().join("\n");
        self.alias(name, Some(about.as_str()).filter(|about| !about.is_empty()), &text);
    }

    /// A shape as an annotation. Objects and unions without a name get the one given.
    fn annotation(&mut self, shape: &Shape, name: &str) -> String {
        match shape {
            Shape::Any => "Any".to_owned(),
            Shape::Null => "None".to_owned(),
            Shape::Boolean => "StrictBool".to_owned(),
            Shape::Integer => "StrictInt".to_owned(),
            Shape::Number => "Number".to_owned(),
            Shape::String => "str".to_owned(),
            Shape::Reference(name) => name.clone(),
            Shape::List(inner) => format!("list[{}]", self.annotation(inner, name)),
            Shape::Map(inner) => format!("dict[str, {}]", self.annotation(inner, name)),
            Shape::Nullable(inner) => format!("{} | None", self.annotation(inner, name)),
            Shape::Union { tag: None, variants }
                if !variants.iter().any(|variant| is_record(&variant.shape)) =>
            {
                let members: Vec<String> =
                    variants.iter().map(|variant| self.annotation(&variant.shape, name)).collect();
                members.join(" | ")
            }
            Shape::Literals(_) | Shape::Object(_) | Shape::Union { .. } => {
                let name = self.free_name(name.to_owned());
                self.declare(&name, &Type { about: None, shape: shape.clone() });
                name
            }
        }
    }

    fn may_be_null(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Any | Shape::Null | Shape::Nullable(_) => true,
            Shape::Reference(name) => self.types.get(name).is_some_and(|ty| self.may_be_null(&ty.shape)),
            _ => false,
        }
    }

    /// Whether a shape mentions something declared further down, and must be a string until then.
    fn is_early(&self, shape: &Shape) -> bool {
        let mut mentioned = Vec::new();
        shape.references(&mut mentioned);
        mentioned.iter().any(|name| !self.declared.contains(name))
    }

    fn free_name(&self, mut name: String) -> String {
        while self.types.contains_key(&name) || self.declared.contains(&name) {
            name.push('_');
        }
        name
    }

    fn alias(&mut self, name: &str, about: Option<&str>, text: &str) {
        let about = about.map_or(String::new(), |about| layout::docstring(0, about));
        self.push(name, &format!("{text}{about}"));
    }

    fn push(&mut self, name: &str, text: &str) {
        self.text += "\n\n";
        self.text += text;
        self.declared.insert(name.to_owned());
    }
}

/// The tag, and the constants all variants share.
fn unknown_fields(union: &TaggedUnion<'_>) -> Vec<Field> {
    let Some(Type { shape: Shape::Object(first), .. }) = union.variants.first() else { return Vec::new() };
    let shared = |field: &&Field| {
        let value = constant(&field.shape);
        value.is_some() && union.variants.iter().all(|variant| variant.shape.constant(&field.name) == value)
    };
    let tag = Field {
        name: union.tag.to_owned(),
        about: None,
        shape: Shape::String,
        optional: false,
        default: None,
    };
    let others = first.fields.iter().filter(|field| field.name != union.tag).filter(shared).cloned();
    std::iter::once(tag).chain(others).collect()
}
