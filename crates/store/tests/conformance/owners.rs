//! One owner per task at any time; a stale one writes nothing.

use std::time::Duration;

use oarlock_store::{LeaseGrant, StoreError, TaskChange, TaskState};

use crate::databases::{PostgresServer, on_each};
use crate::{TTL_MS, create, granted, owned, plain, replica, thread};

#[tokio::test]
async fn a_task_has_one_owner_and_others_learn_where_it_is() {
    on_each(|store| async move {
        let (first, second) = (replica("a", 1), replica("b", 1));
        let lease = owned(&store, "t", &first).await;
        store.renew_replica(&second, TTL_MS).await.expect("a renewal");
        let held = store.acquire_task(&thread("t"), &second).await.expect("an answer");
        assert_eq!(held, LeaseGrant::Held { replica: "a".to_owned(), address: "ws://a".to_owned() });
        assert_eq!(granted(&store, "t", &first).await, lease, "asking again changes nothing");
        store.release_task(&lease).await.expect("a release");
        let next = granted(&store, "t", &second).await;
        assert!(next.epoch > lease.epoch);
        let fenced = store.append(&lease, &thread("t"), 0, vec![plain("late")]).await;
        assert!(matches!(fenced, Err(StoreError::Fenced(_))), "{fenced:?}");
        store.append(&next, &thread("t"), 0, vec![plain("one")]).await.expect("a commit");
        store.release_task(&lease).await.expect("no effect");
        store.append(&next, &thread("t"), 1, vec![plain("two")]).await.expect("still the owner");
    })
    .await;
}

#[tokio::test]
async fn a_host_that_is_started_again_takes_its_tasks_back_with_a_higher_epoch() {
    on_each(|store| async move {
        let before = owned(&store, "t", &replica("a", 1)).await;
        let restarted = replica("a", 2);
        store.renew_replica(&restarted, TTL_MS).await.expect("a renewal");
        let after = granted(&store, "t", &restarted).await;
        assert!(after.epoch > before.epoch);
        let fenced = store.append(&before, &thread("t"), 0, vec![plain("late")]).await;
        assert!(matches!(fenced, Err(StoreError::Fenced(_))), "{fenced:?}");
        let overtaken = store.renew_replica(&replica("a", 1), TTL_MS).await;
        assert!(overtaken.is_err(), "the earlier start renews nothing");
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_never_renewed_owns_nothing() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let refused = store.acquire_task(&thread("t"), &replica("a", 1)).await;
        assert!(matches!(refused, Err(StoreError::Fenced(_))), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn many_at_once_and_one_gets_it() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        for number in 0..8 {
            store.renew_replica(&replica(&format!("r{number}"), 1), TTL_MS).await.expect("a renewal");
        }
        let racers: Vec<_> = (0..8)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move {
                    store.acquire_task(&thread("t"), &replica(&format!("r{number}"), 1)).await
                })
            })
            .collect();
        let mut owners = 0;
        for racer in racers {
            let grant = racer.await.expect("no panic").expect("an answer");
            owners += usize::from(matches!(grant, LeaseGrant::Granted(_)));
        }
        assert_eq!(owners, 1);
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_ran_out_is_anothers_and_writes_nothing_more() {
    let Some(server) = PostgresServer::start() else { return };
    let store = server.store().await;
    let (first, second) = (replica("a", 1), replica("b", 1));
    create(&store, "t", None).await;
    store.renew_replica(&first, 300).await.expect("a renewal");
    store.renew_replica(&second, TTL_MS).await.expect("a renewal");
    let lease = granted(&store, "t", &first).await;
    let receipt = store.append(&lease, &thread("t"), 0, vec![plain("in time")]).await.expect("a commit");
    assert!(receipt.valid_for_ms.is_some_and(|left| left > 0 && left <= 300), "{receipt:?}");
    // By the clock of the database, which is not ours to set.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let late = store.append(&lease, &thread("t"), 1, vec![plain("late")]).await;
    assert!(matches!(late, Err(StoreError::Fenced(_))), "{late:?}");
    store.update_task(&thread("t"), state(TaskState::Running)).await.expect("a change");
    assert_eq!(store.adoptable_tasks(&second, 10).await.expect("tasks"), [thread("t")]);
    let adopted = granted(&store, "t", &second).await;
    assert!(adopted.epoch > lease.epoch);
    assert!(store.adoptable_tasks(&first, 10).await.expect("tasks").is_empty());
}

fn state(state: TaskState) -> TaskChange {
    TaskChange { state: Some(state), ..TaskChange::default() }
}

#[tokio::test]
async fn only_tasks_of_own_sites_with_work_left_are_adopted() {
    on_each(|store| async move {
        for (id, is_at) in
            [("running", TaskState::Running), ("idle", TaskState::Idle), ("elsewhere", TaskState::Running)]
        {
            create(&store, id, None).await;
            store.update_task(&thread(id), state(is_at)).await.expect("a change");
        }
        let moved = TaskChange { site: Some("there".to_owned()), ..TaskChange::default() };
        store.update_task(&thread("elsewhere"), moved).await.expect("a change");
        assert_eq!(store.adoptable_tasks(&replica("a", 1), 10).await.expect("tasks"), [thread("running")]);
    })
    .await;
}
