//! Writes `impl ExperimentalGate`: the run-time half of `#[experimental(...)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Fields, Ident, Item};

use crate::Gated;
use crate::options::Experimental;

pub(crate) fn implement(item: &Item, gates: &[Gated]) -> TokenStream {
    match item {
        Item::Struct(item) => {
            let names = bindings(&item.fields);
            let pattern = pattern(&item.fields, &names);
            implementation(&item.ident, &[Arm { path: quote!(Self), pattern, names, gated: &gates[0] }])
        }
        Item::Enum(item) => {
            let arms: Vec<Arm<'_>> = item
                .variants
                .iter()
                .zip(gates)
                .map(|(variant, gated)| {
                    let ident = &variant.ident;
                    let names = bindings(&variant.fields);
                    let pattern = pattern(&variant.fields, &names);
                    Arm { path: quote!(Self::#ident), pattern, names, gated }
                })
                .collect();
            implementation(&item.ident, &arms)
        }
        _ => TokenStream::new(),
    }
}

struct Arm<'a> {
    path: TokenStream,
    pattern: TokenStream,
    names: Vec<Ident>,
    gated: &'a Gated,
}

fn bindings(fields: &Fields) -> Vec<Ident> {
    fields.iter().enumerate().map(|(at, _)| format_ident!("field_{at}")).collect()
}

fn pattern(fields: &Fields, names: &[Ident]) -> TokenStream {
    match fields {
        Fields::Named(named) => {
            let idents = named.named.iter().map(|field| &field.ident);
            quote!({ #(#idents: #names),* })
        }
        Fields::Unnamed(_) => quote!((#(#names),*)),
        Fields::Unit => quote!(),
    }
}

fn implementation(name: &Ident, arms: &[Arm<'_>]) -> TokenStream {
    let uses = arms.iter().map(|arm| {
        let Arm { path, pattern, names, gated } = arm;
        if let Some(experimental) = &gated.variant {
            let descriptor = &experimental.descriptor;
            return quote!(#path { .. } => Some(#descriptor),);
        }
        let checks = names.iter().zip(&gated.fields).map(|(name, experimental)| match experimental {
            Some(experimental) => {
                let descriptor = &experimental.descriptor;
                let is_used = match experimental.even_empty {
                    true => quote!(Option::is_some(#name)),
                    false => quote!(crate::gate::ExperimentalGate::in_use(#name)),
                };
                quote!(if #is_used { return Some(#descriptor); })
            }
            None => quote! {
                if let Some(descriptor) = crate::gate::ExperimentalGate::experimental_use(#name) {
                    return Some(descriptor);
                }
            },
        });
        quote!(#path #pattern => { #(#checks)* None })
    });
    let strips = arms.iter().map(|arm| {
        let Arm { path, pattern, names, gated } = arm;
        let steps = names.iter().zip(&gated.fields).map(|(name, experimental)| match experimental {
            Some(experimental) if experimental.is_stripped() => quote!(*#name = Default::default();),
            _ => quote!(crate::gate::ExperimentalGate::strip_experimental(#name);),
        });
        quote!(#path #pattern => { #(#steps)* })
    });
    let stripped = |arm: &&Arm<'_>| arm.gated.variant.as_ref().is_some_and(Experimental::is_stripped);
    let variants = arms.iter().filter(stripped).map(|arm| &arm.path);
    let is_variant = {
        let paths: Vec<_> = variants.collect();
        if paths.is_empty() {
            quote!(false)
        } else {
            quote!(match self { #(#paths { .. })|* => true, _ => false })
        }
    };
    quote! {
        #[automatically_derived]
        impl crate::gate::ExperimentalGate for #name {
            fn experimental_use(&self) -> Option<&'static str> {
                match self { #(#uses)* }
            }
            fn strip_experimental(&mut self) {
                match self { #(#strips)* }
            }
            fn is_experimental_variant(&self) -> bool {
                #is_variant
            }
        }
    }
}
