//! What sandboxed commands never reach: our own files, and the places where people keep credentials.

use sandbox::OffLimits;

use crate::Config;

impl Config {
    /// What is out of reach under this configuration.
    pub fn off_limits(&self) -> OffLimits {
        let home = &self.home;
        let mut sealed = vec![home.credentials_file(), home.reading().join("auth.json")];
        sealed.extend((home.state() != home.reading()).then(|| home.state().join("auth.json")));
        OffLimits { sealed, ..OffLimits::default() }
    }
}
