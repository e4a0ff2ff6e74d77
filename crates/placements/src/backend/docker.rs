//! A container of the user's `docker`.

use super::container::ContainerPlace;
use crate::settings::ContainerSettings;

pub(crate) fn docker(mut settings: ContainerSettings) -> ContainerPlace {
    if settings.tool.is_empty() {
        settings.tool.push("docker".to_owned());
    }
    ContainerPlace(settings)
}
