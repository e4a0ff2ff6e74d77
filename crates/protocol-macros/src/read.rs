//! Writes `impl Deserialize` for types that serde reads by keeping the whole object aside first, in a form of its own: that
//! takes a second copy of the code to read everything such an object may hold. These are read from their text instead, by a
//! function that is compiled once.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, Field, Fields, Ident, Item, ItemEnum, LitStr, Token};

use crate::options::Container;
use crate::outer_type;

/// `None` where what serde derives is as good.
pub(crate) fn implement(container: &Container, item: &Item) -> Option<TokenStream> {
    match item {
        Item::Enum(item) => match &container.tag {
            Some(tag) => Some(tagged(container, tag, item)),
            None if container.untagged => untagged(item),
            None => None,
        },
        Item::Struct(item) if item.fields.iter().any(is_part) => {
            let name = &item.ident;
            let body = object(container, &quote!(#name), &item.fields);
            Some(implementation(name, &body))
        }
        _ => None,
    }
}

/// The tag's own type is read first; it says which members to read then.
fn tagged(container: &Container, tag: &LitStr, item: &ItemEnum) -> TokenStream {
    let name = &item.ident;
    let rename = container.rename_all();
    let kinds = item.variants.iter().map(|variant| {
        let attributes = serde_attributes(&variant.attrs);
        let kind = &variant.ident;
        quote!(#(#attributes)* #kind)
    });
    let arms = item.variants.iter().map(|variant| {
        let kind = &variant.ident;
        let body = match &variant.fields {
            Fields::Unit => quote!(Ok(#name::#kind)),
            Fields::Unnamed(_) => quote!(::serde_json::from_str(whole).map(#name::#kind)),
            Fields::Named(_) => object(container, &quote!(#name::#kind), &variant.fields),
        };
        quote!(Kind::#kind => { #body })
    });
    let expected = format!("internally tagged enum {name}");
    let body = quote! {
        #[derive(::serde::Deserialize)]
        #[serde(#rename)]
        enum Kind { #(#kinds),* }
        match crate::text::tag(whole, #tag, #expected)? { #(#arms)* }
    };
    implementation(name, &body)
}

/// The first variant that fits, where each is a type of its own.
fn untagged(item: &ItemEnum) -> Option<TokenStream> {
    let name = &item.ident;
    let is_newtype = |fields: &Fields| matches!(fields, Fields::Unnamed(fields) if fields.unnamed.len() == 1);
    if !item.variants.iter().all(|variant| is_newtype(&variant.fields)) {
        return None;
    }
    let kinds = item.variants.iter().map(|variant| &variant.ident);
    let none = format!("data did not match any variant of untagged enum {name}");
    let body = quote! {
        #(if let Ok(value) = ::serde_json::from_str(whole) {
            return Ok(#name::#kinds(value));
        })*
        Err(::serde::de::Error::custom(#none))
    };
    Some(implementation(name, &body))
}

/// Reads members from the text `whole`; each flattened part finds its own members there.
fn object(container: &Container, path: &TokenStream, fields: &Fields) -> TokenStream {
    let rename = container.rename_all();
    let (parts, members): (Vec<_>, Vec<_>) = fields.iter().partition(|field| is_part(field));
    let names = |fields: &[&Field]| fields.iter().map(|field| field.ident.clone()).collect::<Vec<_>>();
    let (part_names, member_names) = (names(&parts), names(&members));
    let members = members.iter().map(|field| {
        let (attributes, name, ty) = (serde_attributes(&field.attrs), &field.ident, &field.ty);
        quote!(#(#attributes)* #name: #ty)
    });
    let read_members = (!member_names.is_empty()).then(|| {
        quote! {
            #[derive(::serde::Deserialize)]
            #[serde(#rename)]
            struct Members { #(#members),* }
            let Members { #(#member_names),* } = crate::text::object(whole)?;
        }
    });
    quote! {
        #(let #part_names = ::serde_json::from_str(whole)?;)*
        #read_members
        Ok(#path { #(#member_names,)* #(#part_names),* })
    }
}

fn implementation(name: &Ident, body: &TokenStream) -> TokenStream {
    quote! {
        const _: () = {
            fn read(whole: &str) -> ::serde_json::Result<#name> {
                #body
            }
            #[automatically_derived]
            impl<'de> ::serde::Deserialize<'de> for #name {
                fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    crate::text::deserialize(deserializer, read)
                }
            }
        };
    }
}

/// A flattened type with members of its own. A flattened map takes what is left, which serde alone can tell.
fn is_part(field: &Field) -> bool {
    let is_flat = |attribute: &Attribute| {
        let mut found = false;
        let looked = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("flatten");
            let has_value = meta.input.peek(Token![=]);
            if has_value { meta.value()?.parse::<Expr>().map(drop) } else { Ok(()) }
        });
        attribute.path().is_ident("serde") && looked.is_ok() && found
    };
    field.attrs.iter().any(is_flat) && outer_type(&field.ty).as_deref() != Some("BTreeMap")
}

pub(crate) fn serde_attributes(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("serde")).collect()
}
