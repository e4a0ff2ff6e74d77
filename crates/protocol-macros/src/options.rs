//! The options inside `#[wire(...)]` and `#[experimental(...)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Ident, LitStr, Token, parse_quote};

/// The arguments of `#[wire(...)]`.
#[derive(Default)]
pub(crate) struct Container {
    rename: Option<&'static str>,
    pub(crate) tag: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) untagged: bool,
    closed: bool,
    as_is: bool,
    pub(crate) omit_null: bool,
    pub(crate) tag_first: bool,
}

impl Parse for Container {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Container::default();
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "snake_case" => options.rename = Some("snake_case"),
                "kebab_case" => options.rename = Some("kebab-case"),
                "lowercase" => options.rename = Some("lowercase"),
                "screaming" => options.rename = Some("SCREAMING_SNAKE_CASE"),
                "as_is" => options.as_is = true,
                "untagged" => options.untagged = true,
                "closed" => options.closed = true,
                "omit_null" => options.omit_null = true,
                "tag_first" => options.tag_first = true,
                "tag" => {
                    input.parse::<Token![=]>()?;
                    options.tag = Some(input.parse()?);
                }
                "name" => {
                    input.parse::<Token![=]>()?;
                    options.name = Some(input.parse()?);
                }
                _ => return Err(syn::Error::new(word.span(), "unknown #[wire] option")),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Container {
    /// The names of variants, or of the fields of a struct.
    pub(crate) fn rename_all(&self) -> Option<TokenStream> {
        self.case().map(|case| quote!(rename_all = #case))
    }

    fn case(&self) -> Option<&'static str> {
        (!self.as_is && !self.untagged).then(|| self.rename.unwrap_or("camelCase"))
    }

    /// The same, and the names of the fields of variants.
    pub(crate) fn renames(&self, is_enum: bool) -> Vec<TokenStream> {
        let of_fields = self.case().filter(|_| is_enum).map(|case| quote!(rename_all_fields = #case));
        self.rename_all().into_iter().chain(of_fields).collect()
    }

    pub(crate) fn serde_attribute(&self, is_enum: bool) -> TokenStream {
        let mut parts = self.renames(is_enum);
        if let Some(tag) = &self.tag {
            parts.push(quote!(tag = #tag));
        }
        if self.untagged {
            parts.push(quote!(untagged));
        }
        if self.closed {
            parts.push(quote!(deny_unknown_fields));
        }
        let name = self.name.as_ref().map(
            |name| quote!(#[cfg_attr(all(feature = "schema", debug_assertions), schemars(rename = #name))]),
        );
        quote!(#[serde(#(#parts),*)] #name)
    }
}

/// `#[experimental("descriptor")]`, with exceptions a wire may need: `listed` keeps it in stable exports, `sent` keeps
/// it in messages to stable connections, and with `even_empty` an optional field counts as used whatever it holds.
#[derive(Clone)]
pub(crate) struct Experimental {
    pub(crate) descriptor: Expr,
    pub(crate) even_empty: bool,
    sent: bool,
    listed: bool,
}

impl Parse for Experimental {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut experimental =
            Experimental { descriptor: input.parse()?, even_empty: false, sent: false, listed: false };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "listed" => experimental.listed = true,
                "sent" => experimental.sent = true,
                "even_empty" => experimental.even_empty = true,
                _ => return Err(syn::Error::new(word.span(), "expected `listed`, `sent` or `even_empty`")),
            }
        }
        Ok(experimental)
    }
}

impl Experimental {
    /// Stable connections do not get what neither their schema shows nor an exception lets through.
    pub(crate) fn is_stripped(&self) -> bool {
        !self.sent && !self.listed
    }

    /// The mark the exporters read; the gate is generated beside it, so the two cannot disagree.
    pub(crate) fn schema_attribute(&self) -> Attribute {
        if self.listed {
            parse_quote!(#[cfg_attr(all(feature = "schema", debug_assertions), schemars(extend("x-experimental" = "listed")))])
        } else {
            parse_quote!(#[cfg_attr(all(feature = "schema", debug_assertions), schemars(extend("x-experimental" = "hidden")))])
        }
    }
}
