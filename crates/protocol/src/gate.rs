//! The experimental gate at run time. `#[wire]` writes the implementations from `#[experimental(...)]`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Refuses and removes experimental parts on connections without the experimental capability.
pub trait ExperimentalGate {
    /// A field counts as used when it is present, not empty and not `false`.
    fn in_use(&self) -> bool {
        true
    }

    /// The descriptor of the first experimental field or variant in use, in field order.
    fn experimental_use(&self) -> Option<&'static str> {
        None
    }

    /// Removes experimental parts, for a connection without that capability.
    fn strip_experimental(&mut self) {}

    /// Lists leave such an element out; an optional field holding one becomes unset.
    fn is_experimental_variant(&self) -> bool {
        false
    }
}

macro_rules! never_gated {
    ($($ty:ty),* $(,)?) => { $(impl crate::gate::ExperimentalGate for $ty {})* };
}
pub(crate) use never_gated;

never_gated!(String, Value, u8, u16, u32, u64, i32, i64, f64);

impl ExperimentalGate for bool {
    fn in_use(&self) -> bool {
        *self
    }
}

impl<T: ExperimentalGate> ExperimentalGate for Option<T> {
    fn in_use(&self) -> bool {
        self.as_ref().is_some_and(ExperimentalGate::in_use)
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.as_ref()?.experimental_use()
    }
    fn strip_experimental(&mut self) {
        if self.as_ref().is_some_and(ExperimentalGate::is_experimental_variant) {
            *self = None;
        }
        if let Some(inner) = self {
            inner.strip_experimental();
        }
    }
}

impl<T: ExperimentalGate> ExperimentalGate for Vec<T> {
    fn in_use(&self) -> bool {
        !self.is_empty()
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.iter().find_map(ExperimentalGate::experimental_use)
    }
    fn strip_experimental(&mut self) {
        self.retain(|element| !element.is_experimental_variant());
        self.iter_mut().for_each(ExperimentalGate::strip_experimental);
    }
}

impl<K, T: ExperimentalGate> ExperimentalGate for BTreeMap<K, T> {
    fn in_use(&self) -> bool {
        !self.is_empty()
    }
    fn experimental_use(&self) -> Option<&'static str> {
        self.values().find_map(ExperimentalGate::experimental_use)
    }
    fn strip_experimental(&mut self) {
        self.values_mut().for_each(ExperimentalGate::strip_experimental);
    }
}

impl<T: ExperimentalGate> ExperimentalGate for Box<T> {
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
