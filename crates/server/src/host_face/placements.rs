//! `placement/*` of a host.

use std::sync::Arc;

use host::TaskError;
use protocol::{
    PlacementAbandonParams, PlacementAbandonResponse, PlacementDeleteParams, PlacementDeleteResponse,
    PlacementGcParams, PlacementGcResponse, PlacementListParams, PlacementListResponse, PlacementReadParams,
    PlacementReadResponse, PlacementSnapshotParams, PlacementSnapshotResponse, PlacementSuspendParams,
    PlacementSuspendResponse,
};

use crate::host_face::app::HostApp;
use crate::host_face::handlers::name_of;
use crate::hub::Requester;

pub(crate) async fn list(
    app: Arc<HostApp>,
    _: Requester,
    _: PlacementListParams,
) -> Result<PlacementListResponse, TaskError> {
    Ok(PlacementListResponse { data: app.host.list_placements().await? })
}

pub(crate) async fn read(
    app: Arc<HostApp>,
    _: Requester,
    params: PlacementReadParams,
) -> Result<PlacementReadResponse, TaskError> {
    Ok(PlacementReadResponse { placement: app.host.read_placement(&params.placement_id).await? })
}

pub(crate) async fn snapshot(
    app: Arc<HostApp>,
    caller: Requester,
    params: PlacementSnapshotParams,
) -> Result<PlacementSnapshotResponse, TaskError> {
    let placement = app.host.snapshot_placement(&params.placement_id, &name_of(&caller)).await?;
    Ok(PlacementSnapshotResponse { placement })
}

pub(crate) async fn suspend(
    app: Arc<HostApp>,
    caller: Requester,
    params: PlacementSuspendParams,
) -> Result<PlacementSuspendResponse, TaskError> {
    let placement = app.host.suspend_placement(&params.placement_id, &name_of(&caller)).await?;
    Ok(PlacementSuspendResponse { placement })
}

pub(crate) async fn abandon(
    app: Arc<HostApp>,
    caller: Requester,
    params: PlacementAbandonParams,
) -> Result<PlacementAbandonResponse, TaskError> {
    let placement = app.host.abandon_placement(&params.placement_id, &name_of(&caller)).await?;
    Ok(PlacementAbandonResponse { placement })
}

pub(crate) async fn delete(
    app: Arc<HostApp>,
    caller: Requester,
    params: PlacementDeleteParams,
) -> Result<PlacementDeleteResponse, TaskError> {
    app.host.delete_placement(&params.placement_id, &name_of(&caller)).await?;
    Ok(PlacementDeleteResponse {})
}

pub(crate) async fn gc(
    app: Arc<HostApp>,
    caller: Requester,
    params: PlacementGcParams,
) -> Result<PlacementGcResponse, TaskError> {
    Ok(PlacementGcResponse { data: app.host.remove_unused_placements(&params, &name_of(&caller)).await? })
}
