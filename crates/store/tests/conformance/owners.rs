//! One owner per task at any time; a stale one writes nothing.

use std::time::{Duration, Instant};

use oarlock_store::{LeaseGrant, StoreError, StoreNews, TaskChange, TaskState};
use serde_json::json;

use crate::databases::{on_each, postgres};
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
        let overtaken = store.register_replica(&replica("a", 1), TTL_MS).await;
        assert!(
            matches!(overtaken, Err(StoreError::ReplicaReplaced(_))),
            "nor does it come back: {overtaken:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_owners_of_many_threads_are_found_at_once_children_by_their_roots() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        create(&store, "child", Some("t")).await;
        create(&store, "nobodys", None).await;
        let threads = || ["t", "child", "nobodys", "unknown"].map(thread).to_vec();
        let found = store.owners_of(threads()).await.expect("owners");
        let seen: Vec<_> = found.iter().map(|(id, owner)| (id.as_str(), owner.replica.as_str())).collect();
        assert_eq!(seen, [("child", "a"), ("t", "a")]);
        store.release_task(&lease).await.expect("a release");
        assert!(store.owners_of(threads()).await.expect("owners").is_empty());
    })
    .await;
}

#[tokio::test]
async fn replicas_are_listed_with_their_leases_and_tasks() {
    on_each(|store| async move {
        owned(&store, "t", &replica("a", 1)).await;
        create(&store, "child", Some("t")).await;
        store.renew_replica(&replica("b", 1), -1).await.expect("a renewal");
        let found = store.list_replicas().await.expect("a list");
        let seen: Vec<_> = found.iter().map(|row| (row.id.as_str(), row.is_alive, row.tasks)).collect();
        // Where leases do not expire, none is over.
        assert_eq!(seen, [("a", true, 1), ("b", !store.leases_expire(), 0)]);
        assert!(found.iter().all(|row| row.expires_at_ms.is_some() == store.leases_expire()), "{found:?}");
        let counts = store.child_counts(vec![thread("t"), thread("child")]).await.expect("counts");
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(thread("t"), 1)]);
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
    let Some(server) = postgres() else { return };
    let store = server.store().await;
    let (first, second) = (replica("a", 1), replica("b", 1));
    create(&store, "t", None).await;
    store.renew_replica(&first, 300).await.expect("a renewal");
    store.renew_replica(&second, TTL_MS).await.expect("a renewal");
    let lease = granted(&store, "t", &first).await;
    let receipt = store.append(&lease, &thread("t"), 0, vec![plain("in time")]).await.expect("a commit");
    assert!(receipt.valid_for_ms.is_some_and(|left| left > 0 && left <= 300), "{receipt:?}");
    // By the clock of the database, which is not ours to set.
    let deadline = Instant::now() + Duration::from_secs(30);
    while store.owner_of(&thread("t")).await.expect("an answer").is_some() {
        assert!(Instant::now() < deadline, "the lease never ran out");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = store.append(&lease, &thread("t"), 1, vec![plain("late")]).await;
    assert!(matches!(late, Err(StoreError::Fenced(_))), "{late:?}");
    store.update_task(&thread("t"), state(TaskState::Running)).await.expect("a change");
    let owner = store.owner_of(&thread("t")).await.expect("an answer");
    assert_eq!(owner, None, "its owner is out of time");
    let adopted = store.adopt_tasks(&second, 10).await.expect("tasks");
    assert_eq!(adopted.len(), 1);
    assert!(adopted[0].epoch > lease.epoch);
    let owner = store.owner_of(&thread("t")).await.expect("an answer");
    assert_eq!(owner.map(|owner| owner.address).as_deref(), Some("ws://b"));
    assert!(store.adopt_tasks(&second, 10).await.expect("tasks").is_empty(), "once");
    let stale = store.set_task_state(&lease, TaskState::Failed).await;
    assert!(matches!(stale, Err(StoreError::Fenced(_))), "{stale:?}");
    let stale = store.note_runtime(&lease, json!({"pid": 1})).await;
    assert!(matches!(stale, Err(StoreError::Fenced(_))), "{stale:?}");
    // Its next runtime has an epoch of its own.
    let next = store.next_epoch(&thread("t"), &second).await.expect("an epoch");
    assert!(next.epoch > adopted[0].epoch);
    let stale = store.next_epoch(&thread("t"), &first).await;
    assert!(matches!(stale, Err(StoreError::Fenced(_))), "{stale:?}");
}

/// Two that look at the same time share the work, and nothing is in two hands.
#[tokio::test]
async fn replicas_that_adopt_at_once_get_different_tasks() {
    let Some(server) = postgres() else { return };
    let store = server.store().await;
    for number in 0..12 {
        let id = format!("t{number}");
        create(&store, &id, None).await;
        store.update_task(&thread(&id), state(TaskState::Running)).await.expect("a change");
    }
    let mut racers = Vec::new();
    for name in ["a", "b", "c"] {
        let own = store.register_replica(&replica(name, 0), TTL_MS).await.expect("a registration");
        let store = store.clone();
        racers.push(tokio::spawn(async move {
            let mut all = Vec::new();
            loop {
                let adopted = store.adopt_tasks(&own, 2).await.expect("tasks");
                if adopted.is_empty() {
                    return all;
                }
                all.extend(adopted.into_iter().map(|lease| lease.task));
            }
        }));
    }
    let mut all = Vec::new();
    for racer in racers {
        all.extend(racer.await.expect("no panic"));
    }
    // Rows that another one had locked in that moment are left for the next look.
    let own = store.register_replica(&replica("d", 0), TTL_MS).await.expect("a registration");
    all.extend(store.adopt_tasks(&own, 100).await.expect("tasks").into_iter().map(|lease| lease.task));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12);
}

/// A test that waits so long has failed.
async fn soon<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it comes within 30 s")
}

#[tokio::test]
async fn other_hosts_hear_of_decisions_input_and_released_tasks() {
    let Some(server) = postgres() else { return };
    let (store, other) = (server.store().await, server.store().await);
    let mut news = other.news().expect("several hosts may share it");
    assert_eq!(soon(news.recv()).await, Some(StoreNews::Unknown), "it listens");
    let lease = owned(&store, "t", &replica("a", 1)).await;
    store.release_task(&lease).await.expect("a release");
    assert_eq!(soon(news.recv()).await, Some(StoreNews::Task(thread("t"))));
    // It goes on after the database was away.
    server.stop("fast");
    server.begin();
    assert_eq!(soon(news.recv()).await, Some(StoreNews::Unknown));
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
        let own = store.register_replica(&replica("a", 0), TTL_MS).await.expect("a registration");
        let adopted = store.adopt_tasks(&own, 10).await.expect("tasks");
        assert_eq!(adopted.iter().map(|lease| &lease.task).collect::<Vec<_>>(), [&thread("running")]);
    })
    .await;
}
