//! The experimental gate at run time. `#[wire]` writes the implementations from `#[experimental(...)]`.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a connection without the experimental capability may not send and is not sent.
pub trait Gate {
    /// A field counts as used when it is present, not empty and not `false`.
    fn in_use(&self) -> bool {
        true
    }

    /// The descriptor of the first experimental field or variant in use, in field order.
    fn experimental_use(&self) -> Option<&'static str> {
        None
    }

    /// Takes out what a stable connection must not see.
    fn strip_experimental(&mut self) {}

    /// Lists leave such an element out; an optional field holding one becomes unset.
    fn is_experimental_variant(&self) -> bool {
        false
    }
}

macro_rules! never_gated {
    ($($ty:ty),* $(,)?) => { $(impl crate::gate::Gate for $ty {})* };
}
pub(crate) use never_gated;

never_gated!(String, Value, u8, u16, u32, u64, i32, i64, f64);

impl Gate for bool {
    fn in_use(&self) -> bool {
        *self
    }
}

impl<T: Gate> Gate for Option<T> {
    fn in_use(&self) -> bool {
        self.as_ref().is_some_and(Gate::in_use)
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.as_ref()?.experimental_use()
    }
    fn strip_experimental(&mut self) {
        if self.as_ref().is_some_and(Gate::is_experimental_variant) {
            *self = None;
        }
        if let Some(inner) = self {
            inner.strip_experimental();
        }
    }
}

impl<T: Gate> Gate for Vec<T> {
    fn in_use(&self) -> bool {
        !self.is_empty()
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.iter().find_map(Gate::experimental_use)
    }
    fn strip_experimental(&mut self) {
        self.retain(|element| !element.is_experimental_variant());
        self.iter_mut().for_each(Gate::strip_experimental);
    }
}

impl<K, T: Gate> Gate for BTreeMap<K, T> {
    fn in_use(&self) -> bool {
        !self.is_empty()
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.values().find_map(Gate::experimental_use)
    }
    fn strip_experimental(&mut self) {
        self.values_mut().for_each(Gate::strip_experimental);
    }
}

impl<T: Gate> Gate for Box<T> {
    fn in_use(&self) -> bool {
        self.as_ref().in_use()
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.as_ref().experimental_use()
    }
    fn strip_experimental(&mut self) {
        self.as_mut().strip_experimental();
    }
    fn is_experimental_variant(&self) -> bool {
        self.as_ref().is_experimental_variant()
    }
}
