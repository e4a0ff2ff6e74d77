//! Writes `impl Frequent`: a decoder for values whose tag is written first, as records have them. It reads the variants that
//! are marked `#[frequent]`, or all if none is; a field with `#[frequent(with = "…")]` is read by that function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Field, Item, ItemEnum, LitStr, Variant};

use crate::options::Container;
use crate::read::serde_attributes;
use crate::take;

/// The enum with what only this decoder wants to know taken off it, and the decoder.
pub(crate) fn implement(container: &Container, item: &mut Item) -> syn::Result<Option<TokenStream>> {
    match item {
        Item::Enum(item) if container.tag_first => decoder(container, item).map(Some),
        item if container.tag_first => {
            Err(syn::Error::new_spanned(item, "`tag_first` needs an enum with a tag"))
        }
        _ => Ok(None),
    }
}

fn decoder(container: &Container, item: &mut ItemEnum) -> syn::Result<TokenStream> {
    let has_marks = item.variants.iter().any(|variant| variant.attrs.iter().any(is_mark));
    let mut variants = Vec::new();
    for variant in &mut item.variants {
        let is_frequent = take(&mut variant.attrs, "frequent").is_some() || !has_marks;
        let read = read_by(variant)?;
        variants.extend(is_frequent.then_some(read));
    }
    let (name, renames) = (&item.ident, container.renames(true));
    let remote = name.to_string();
    Ok(quote! {
        const _: () = {
            #[derive(::serde::Deserialize)]
            #[serde(remote = #remote, #(#renames),*)]
            enum FrequentKind { #(#variants),* }
            #[automatically_derived]
            impl crate::tag_first::Frequent for #name {
                fn decode<'de, D: ::serde::Deserializer<'de>>(tagged: D) -> Result<Self, D::Error> {
                    FrequentKind::deserialize(tagged)
                }
            }
        };
    })
}

fn is_mark(attribute: &Attribute) -> bool {
    attribute.path().is_ident("frequent")
}

/// The variant as the decoder reads it.
fn read_by(variant: &mut Variant) -> syn::Result<TokenStream> {
    let fields = variant.fields.iter_mut().map(field).collect::<syn::Result<Vec<_>>>()?;
    let (name, attributes) = (&variant.ident, serde_attributes(&variant.attrs));
    Ok(quote!(#(#attributes)* #name { #(#fields),* }))
}

fn field(field: &mut Field) -> syn::Result<TokenStream> {
    let with = take(&mut field.attrs, "frequent").map(|attribute| with_of(&attribute)).transpose()?;
    let with = with.map(|path| quote!(#[serde(deserialize_with = #path)]));
    let (attributes, name, ty) = (serde_attributes(&field.attrs), &field.ident, &field.ty);
    Ok(quote!(#(#attributes)* #with #name: #ty))
}

fn with_of(attribute: &Attribute) -> syn::Result<LitStr> {
    let mut path = None;
    attribute.parse_nested_meta(|meta| {
        if !meta.path.is_ident("with") {
            return Err(meta.error("expected `with = \"path\"`"));
        }
        path = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    path.ok_or_else(|| syn::Error::new_spanned(attribute, "expected `with = \"path\"`"))
}
