//! A container of the user's `podman`.

use super::container::ContainerPlace;
use crate::settings::ContainerSettings;

pub(crate) fn podman(mut settings: ContainerSettings) -> ContainerPlace {
    if settings.tool.is_empty() {
        settings.tool.push("podman".to_owned());
    }
    ContainerPlace(settings)
}
