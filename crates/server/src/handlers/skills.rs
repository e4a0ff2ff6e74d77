//! Skills: which there are, and which are switched on.

use std::sync::Arc;

use protocol::{SkillsConfigWriteParams, SkillsConfigWriteResponse, SkillsListParams, SkillsListResponse};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn list(
    app: Arc<App>,
    _: Requester,
    params: SkillsListParams,
) -> Result<SkillsListResponse, RuntimeError> {
    app.runtime.list_skills(params).await
}

pub(crate) async fn config_write(
    app: Arc<App>,
    _: Requester,
    params: SkillsConfigWriteParams,
) -> Result<SkillsConfigWriteResponse, RuntimeError> {
    app.runtime.write_skill_config(params).await
}
