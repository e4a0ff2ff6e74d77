//! Owns logins with a ChatGPT account: in a browser, by a code on another device, and refreshing tokens. Must not know
//! threads, clients or where tokens are stored.

mod browser;
mod claims;
mod device;
mod error;
mod issuer;
mod usage;

pub use browser::BrowserLogin;
pub use claims::AccountClaims;
pub use device::DeviceLogin;
pub use error::AccountLoginError;
pub use issuer::Issuer;
pub use usage::read_usage;
