//! Owns logging in with a ChatGPT account: the browser, the code for another device, and fresh tokens in place of old
//! ones. Must not know threads, clients or where tokens are kept.

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
