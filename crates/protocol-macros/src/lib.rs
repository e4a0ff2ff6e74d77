//! Owns `#[wire]`: the derives, the naming and the experimental gate of a wire type, written once on the type.
//! Must not know any method or type of the protocol.
//!
//! ```ignore
//! #[wire]                                   // camelCase object
//! pub struct TurnSteerParams {
//!     pub thread_id: ThreadId,
//!     /// Left out when unset instead of being sent as null.
//!     #[omit]
//!     pub note: Option<String>,
//!     #[experimental("turn/steer.additionalContext")]
//!     pub additional_context: Option<AdditionalContext>,
//! }
//! ```

mod gate;
mod options;
mod read;
mod tag_first;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Field, Fields, Item, ItemEnum, ItemStruct, LitStr, Type, parse_macro_input, parse_quote,
};

use crate::options::{Container, Experimental};

/// Makes a struct or enum a wire type. See the crate page for the field attributes.
///
/// Options: `snake_case`, `kebab_case`, `lowercase`, `screaming`, `as_is` (default `camelCase`), `tag = "…"`,
/// `untagged`, `name = "…"` (what exports call it), `omit_null` (every unset `Option` field is left out when
/// serialising), `closed` (unknown fields are refused), `tag_first` (also a decoder for values that begin with their tag, for
/// variants marked `#[frequent]`).
#[proc_macro_attribute]
pub fn wire(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let container = parse_macro_input!(args as Container);
    let item = parse_macro_input!(item as Item);
    expand(&container, item).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(container: &Container, mut item: Item) -> syn::Result<TokenStream> {
    let mut gates = Vec::new();
    let mut unit_only = false;
    let mut is_enum = false;
    match &mut item {
        Item::Struct(item) => gates.push(fields(container, &mut item.fields)?),
        Item::Enum(item) => {
            is_enum = true;
            unit_only = item.variants.iter().all(|variant| variant.fields.is_empty());
            for variant in &mut item.variants {
                let mut own = take_experimental(&mut variant.attrs)?;
                if let Some(own) = &mut own {
                    variant.attrs.push(own.schema_attribute());
                }
                let mut inner = fields(container, &mut variant.fields)?;
                inner.variant = own;
                gates.push(inner);
            }
        }
        other => return Err(syn::Error::new_spanned(other, "#[wire] goes on a struct or an enum")),
    }
    let tag_first = tag_first::implement(container, &mut item)?;
    let serde = container.serde_attribute(is_enum);
    let copy = unit_only.then(|| quote!(Copy, Eq, Hash, PartialOrd, Ord,));
    let gate = gate::implement(&item, &gates);
    let named = named(container, &item);
    let read = read::implement(container, &item);
    let derived_read = read.is_none().then(|| quote!(::serde::Deserialize));
    Ok(quote! {
        #[derive(Debug, Clone, PartialEq, #copy ::serde::Serialize, #derived_read)]
        #[cfg_attr(all(feature = "schema", debug_assertions), derive(::schemars::JsonSchema))]
        #serde
        #item
        #gate
        #named
        #read
        #tag_first
    })
}

/// Without the feature `schema` only the name is left of a type's schema.
fn named(container: &Container, item: &Item) -> Option<TokenStream> {
    let (Item::Struct(ItemStruct { ident, .. }) | Item::Enum(ItemEnum { ident, .. })) = item else {
        return None;
    };
    let name = container.name.as_ref().map_or(ident.to_string(), LitStr::value);
    Some(quote! {
        impl crate::method::Named for #ident {
            const NAME: &'static str = #name;

            #[cfg(all(feature = "schema", debug_assertions))]
            fn schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                generator.subschema_for::<Self>()
            }
        }
    })
}

/// The facts that the gate needs about one struct or one enum variant.
struct Gated {
    variant: Option<Experimental>,
    fields: Vec<Option<Experimental>>,
}

fn fields(container: &Container, fields: &mut Fields) -> syn::Result<Gated> {
    let mut gated = Gated { variant: None, fields: Vec::new() };
    for field in fields.iter_mut() {
        let experimental = take_experimental(&mut field.attrs)?;
        if let Some(experimental) = &experimental {
            field.attrs.push(experimental.schema_attribute());
        }
        presence(container, field)?;
        gated.fields.push(experimental);
    }
    Ok(gated)
}

/// Decides when a field is left out of the JSON: `#[omit]`, the container's `omit_null`, or a tri-state type.
fn presence(container: &Container, field: &mut Field) -> syn::Result<()> {
    let omit = take(&mut field.attrs, "omit").is_some();
    let attribute: Option<Attribute> = match outer_type(&field.ty).as_deref() {
        Some("TriState") => {
            Some(parse_quote!(#[serde(default, skip_serializing_if = "crate::TriState::is_keep")]))
        }
        Some("Option") if omit || container.omit_null => {
            Some(parse_quote!(#[serde(default, skip_serializing_if = "Option::is_none")]))
        }
        Some("Vec") if omit => Some(parse_quote!(#[serde(default, skip_serializing_if = "Vec::is_empty")])),
        Some("BTreeMap") if omit => {
            Some(parse_quote!(#[serde(default, skip_serializing_if = "BTreeMap::is_empty")]))
        }
        Some("bool") if omit => {
            // Left out of the JSON, so the schema would not show what leaving it out means.
            field
                .attrs
                .push(parse_quote!(#[cfg_attr(all(feature = "schema", debug_assertions), schemars(extend("default" = false)))]));
            Some(parse_quote!(#[serde(default, skip_serializing_if = "std::ops::Not::not")]))
        }
        _ if omit => {
            return Err(syn::Error::new_spanned(&field.ty, "#[omit] needs an Option, Vec, BTreeMap or bool"));
        }
        _ => None,
    };
    field.attrs.extend(attribute);
    Ok(())
}

fn outer_type(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let at = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(at))
}

fn take_experimental(attributes: &mut Vec<Attribute>) -> syn::Result<Option<Experimental>> {
    take(attributes, "experimental").map(|attribute| attribute.parse_args()).transpose()
}
