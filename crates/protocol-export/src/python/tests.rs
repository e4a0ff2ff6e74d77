//! Types in, Python out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{BASE, python};
use super::{methods, types};
use crate::Surface;
use crate::ir::{Extra, Field, Literal, MethodRow, ObjectShape, Shape, Type};

fn ty(shape: Shape) -> Type {
    Type { about: None, shape }
}

fn object(fields: Vec<Field>) -> Shape {
    Shape::Object(ObjectShape { fields, extra: Extra::Ignored })
}

fn field(name: &str, shape: Shape) -> Field {
    Field { name: name.to_owned(), about: None, shape, optional: false, default: None }
}

fn optional(name: &str, shape: Shape, default: Option<Value>) -> Field {
    Field { optional: true, default, ..field(name, shape) }
}

fn literals(values: &[&str]) -> Shape {
    let literal = |value: &&str| Literal { value: (*value).to_owned(), about: None };
    Shape::Literals(values.iter().map(literal).collect())
}

fn nullable(shape: Shape) -> Shape {
    Shape::Nullable(Box::new(shape))
}

/// Checks the printed types.
#[track_caller]
fn check<const N: usize>(declared: [(&str, Type); N], expected: &str) {
    let declared: BTreeMap<String, Type> =
        declared.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect();
    let text = types::declarations(&declared).text;
    assert!(text.trim() == expected.trim(), "printed:\n{text}");
}

#[test]
fn an_object_is_a_model_with_snake_case_attributes() {
    let mut first = field("threadId", Shape::String);
    first.about = Some("Whose.".to_owned());
    let shape = object(vec![
        first,
        optional("maxTokens", nullable(Shape::Integer), None),
        optional("isOn", Shape::Boolean, Some(json!(true))),
        optional("roots", Shape::List(Box::new(Shape::String)), Some(json!([]))),
        optional("omitted", Shape::Boolean, None),
        optional("extra", Shape::Any, None),
        field("cost", Shape::Map(Box::new(Shape::Number))),
    ]);
    let expected = r#"
class Note(WireModel):
    """Says something."""

    thread_id: str
    """Whose."""
    max_tokens: StrictInt | None = None
    is_on: StrictBool = True
    roots: list[str] = []
    omitted: Annotated[StrictBool | None, NOT_NULL] = None
    extra: Any = None
    cost: dict[str, Number]
"#;
    check([("Note", Type { about: Some("Says something.".to_owned()), shape })], expected);
}

#[test]
fn keywords_model_attributes_and_odd_wire_names_are_spelled_apart() {
    let fields = ["from", "schema", "_meta", "image_url", "model_x"].map(|name| field(name, Shape::String));
    let expected = r#"
class Odd(WireModel):
    from_: str
    schema_: str
    meta: Annotated[str, wire("_meta")]
    image_url: Annotated[str, wire("image_url")]
    model_x: Annotated[str, wire("model_x")]
"#;
    check([("Odd", ty(object(fields.to_vec())))], expected);
}

#[test]
fn a_tagged_union_has_a_class_per_variant_and_one_for_the_unknown() {
    let plan = object(vec![field("type", literals(&["plan"])), field("text", Shape::String)]);
    let state = |state| {
        let tags = vec![field("state", literals(&[state])), field("type", literals(&["job"]))];
        ty(object(tags))
    };
    let job = Shape::Union { tag: Some("state".to_owned()), variants: vec![state("open"), state("done")] };
    let union = Shape::Union { tag: Some("type".to_owned()), variants: vec![ty(plan), ty(job)] };
    let expected = r#"
class ItemPlan(Variant):
    type: Literal["plan"] = "plan"
    text: str


class ItemJobOpen(Variant):
    state: Literal["open"] = "open"
    type: Literal["job"] = "job"


class ItemJobDone(Variant):
    state: Literal["done"] = "done"
    type: Literal["job"] = "job"


class UnknownItemJob(UnknownVariant):
    """A `state` that this version does not know."""

    state: str
    type: Literal["job"] = "job"


ItemJob: TypeAlias = Annotated[ItemJobOpen | ItemJobDone | UnknownItemJob, Tagged("state")]


class UnknownItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


Item: TypeAlias = Annotated[ItemPlan | ItemJob | UnknownItem, Tagged("type")]
"#;
    check([("Item", ty(union))], expected);
}

#[test]
fn an_enum_is_open_with_and_without_a_string_beside_it() {
    let either = Shape::Union { tag: None, variants: vec![ty(literals(&["a", "b"])), ty(Shape::String)] };
    let expected = r#"
First: TypeAlias = Open[Literal["a", "b"]]


Second: TypeAlias = Open[Literal["a", "b"]]
"#;
    check([("First", ty(literals(&["a", "b"]))), ("Second", ty(either))], expected);
}

#[test]
fn a_keyed_union_has_names_keys_and_room_for_both() {
    let body = object(vec![field("status", Shape::Integer)]);
    let keyed = Shape::Object(ObjectShape { fields: vec![field("broken", body)], extra: Extra::Refused });
    let union = Shape::Union { tag: None, variants: vec![ty(literals(&["other"])), ty(keyed)] };
    let expected = r#"
FaultName: TypeAlias = Open[Literal["other"]]


class FaultBrokenBody(WireModel):
    status: StrictInt


class FaultBroken(WireModel):
    broken: FaultBrokenBody


class UnknownFault(UnknownVariant):
    """A key that this version does not know."""


Fault: TypeAlias = Annotated[FaultName | FaultBroken | UnknownFault, Keyed()]
"#;
    check([("Fault", ty(union))], expected);
}

#[test]
fn arms_only_their_fields_tell_apart_are_closed() {
    let kind = Shape::Reference("Kind".to_owned());
    let arm = Shape::Object(ObjectShape { fields: vec![field("kind", kind)], extra: Extra::Refused });
    let arms = ["Arm", "Other"].map(|name| ty(Shape::Reference(name.to_owned())));
    let union = Shape::Union { tag: None, variants: arms.to_vec() };
    let expected = r#"
Kind: TypeAlias = Literal["x"]


class Arm(ClosedModel):
    kind: Kind


class Other(WireModel):
    pass


Both: TypeAlias = Annotated[Arm | Other, FIRST_MATCH]
"#;
    let declared = [
        ("Arm", ty(arm)),
        ("Both", ty(union)),
        ("Kind", ty(literals(&["x"]))),
        ("Other", ty(object(Vec::new()))),
    ];
    check(declared, expected);
}

#[test]
fn types_in_a_circle_are_mentioned_by_name() {
    let list = |name: &str| Shape::List(Box::new(Shape::Reference(name.to_owned())));
    let declared = [
        ("Leaf", ty(object(vec![field("trees", list("Tree"))]))),
        ("Tree", ty(object(vec![field("leaves", list("Leaf"))]))),
    ];
    let expected = r#"
class Tree(WireModel):
    leaves: "list[Leaf]"


class Leaf(WireModel):
    trees: list[Tree]
"#;
    check(declared, expected);
}

#[test]
fn a_row_names_its_types() {
    let row = MethodRow {
        method: "thread/start",
        about: "Creates a thread.",
        experimental: true,
        params: Some("ThreadStartParams".to_owned()),
        response: Some("Either".to_owned()),
    };
    let classes = BTreeSet::from(["ThreadStartParams".to_owned()]);
    let expected = r#"    "thread/start": RequestMethod(
        method="thread/start",
        params=ThreadStartParams,
        response=form(Either),
        experimental=True,
        doc="Creates a thread.",
    ),
"#;
    assert_eq!(methods::print_row(&row, &classes), expected);
}

#[test]
fn the_package_is_the_same_every_time() {
    for surface in [Surface::Stable, Surface::Experimental] {
        assert_eq!(python(surface), python(surface));
    }
}

#[test]
fn no_type_has_the_name_of_a_helper() {
    let files = python(Surface::Experimental);
    let types = files.iter().find(|file| file.path.ends_with("/types.py")).unwrap();
    let helpers = ["Annotated", "Any", "Field", "Literal", "StrictBool", "StrictInt", "TypeAlias"];
    let declared = |name: &str| {
        types.text.contains(&format!("\nclass {name}(")) || types.text.contains(&format!("\n{name}: "))
    };
    let base =
        BASE.lines().filter_map(|line| line.strip_prefix("class ")?.split('(').next()?.split(':').next());
    for helper in helpers.into_iter().chain(base).chain(methods::exports()) {
        assert!(!declared(helper), "{helper} is both a type and a helper");
    }
}
