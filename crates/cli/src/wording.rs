//! Warnings as one line of text.

use protocol::ConfigWarningNotification;
use runtime::config::SettingWarning;
pub(crate) use turn_view::with_details;

pub(crate) fn warning_text(warning: &SettingWarning) -> String {
    let ConfigWarningNotification { summary, details, .. } = warning.clone().into();
    with_details(&summary, details.as_deref())
}
