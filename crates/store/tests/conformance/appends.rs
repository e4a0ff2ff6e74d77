//! Records: all or nothing, in order, for the owner alone.

use std::path::Path;
use std::time::{Duration, Instant};

use oarlock_store::{PasswordSources, PostgresOptions, SqliteOptions, StoreError, TaskStore};

use crate::databases::{on_each, postgres, sqlite_options};
use crate::postgres::PostgresServer;
use crate::{create, granted, owned, plain, replica, thread};

#[tokio::test]
async fn records_come_back_in_order_and_byte_for_byte() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let odd = "{\"text\":\"\\u0000 ✓ \\ud83d\\ude00 '; DROP TABLE tasks; --\",  \"spaces\" : 1}";
        let mut records = vec![plain("one"), plain("two")];
        records[1].payload = odd.to_owned();
        let receipt = store.append(&lease, &thread("t"), 0, records).await.expect("a commit");
        assert_eq!(receipt.next_ordinal, 2);
        store.append(&lease, &thread("t"), 2, vec![plain("three")]).await.expect("a commit");
        let read = store.records(&thread("t"), 1, 10).await.expect("records");
        assert_eq!(read.iter().map(|record| record.ordinal).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(read[0].payload, odd);
        let task = store.task(&thread("t")).await.expect("an answer").expect("a task");
        assert_eq!(task.next_ordinal, 3);
        assert!(task.record_bytes > odd.len() as u64);
    })
    .await;
}

#[tokio::test]
async fn a_wrong_ordinal_writes_nothing_and_names_the_next_one() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        store.append(&lease, &thread("t"), 0, vec![plain("one")]).await.expect("a commit");
        for wrong in [0, 2, 99] {
            let refused = store.append(&lease, &thread("t"), wrong, vec![plain("other")]).await;
            assert!(matches!(refused, Err(StoreError::OrdinalConflict { next: 1, .. })), "{refused:?}");
        }
        assert_eq!(store.records(&thread("t"), 0, 10).await.expect("records").len(), 1);
    })
    .await;
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_may_be_repeated() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let records = || vec![plain("one"), plain("two")];
        let first = store.append(&lease, &thread("t"), 0, records()).await.expect("a commit");
        let again = store.append(&lease, &thread("t"), 0, records()).await.expect("the same answer");
        assert_eq!(first.next_ordinal, again.next_ordinal);
        assert_eq!(store.records(&thread("t"), 0, 10).await.expect("records").len(), 2);
    })
    .await;
}

#[tokio::test]
async fn appends_at_once_succeed_or_fail_singly() {
    on_each(|store| async move {
        let owner = replica("a", 1);
        let lease = owned(&store, "root", &owner).await;
        for child in 0..20 {
            create(&store, &format!("child-{child}"), Some("root")).await;
        }
        let appends = (0..20).map(|child| {
            let (store, lease) = (store.clone(), lease.clone());
            tokio::spawn(async move {
                // Every third one is refused.
                let expected = u64::from(child % 3 == 0);
                let name = thread(&format!("child-{child}"));
                store.append(&lease, &name, expected, vec![plain("one"), plain("two")]).await
            })
        });
        let appends: Vec<_> = appends.collect();
        for (child, append) in appends.into_iter().enumerate() {
            let result = append.await.expect("no panic");
            assert_eq!(result.is_ok(), child % 3 != 0, "{child}: {result:?}");
            let stored = store.records(&thread(&format!("child-{child}")), 0, 10).await.expect("records");
            assert_eq!(stored.len(), if child % 3 == 0 { 0 } else { 2 });
        }
    })
    .await;
}

#[tokio::test]
async fn appends_to_one_thread_at_once_leave_no_gap() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let racers: Vec<_> = (0..8)
            .map(|racer| {
                let (store, lease) = (store.clone(), lease.clone());
                tokio::spawn(async move {
                    let mut next = 0;
                    let mut written = 0;
                    while written < 5 {
                        match store
                            .append(&lease, &thread("t"), next, vec![plain(&format!("{racer} {written}"))])
                            .await
                        {
                            Ok(receipt) => (written, next) = (written + 1, receipt.next_ordinal),
                            Err(StoreError::OrdinalConflict { next: there, .. }) => next = there,
                            // Lost to the others too often; nothing was written.
                            Err(StoreError::Unavailable(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.expect("no panic");
        }
        let records = store.records(&thread("t"), 0, 100).await.expect("records");
        assert!(records.iter().map(|record| record.ordinal).eq(0..40));
    })
    .await;
}

#[tokio::test]
async fn another_tasks_lease_opens_no_other_record() {
    on_each(|store| async move {
        let owner = replica("a", 1);
        let lease = owned(&store, "mine", &owner).await;
        create(&store, "theirs", None).await;
        granted(&store, "theirs", &owner).await;
        let refused = store.append(&lease, &thread("theirs"), 0, vec![plain("one")]).await;
        assert!(matches!(refused, Err(StoreError::UnknownTask(_))), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn what_is_committed_is_there_after_the_process_and_the_file_is_one_process_alone() {
    for is_synced in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SqliteOptions { is_synced, ..sqlite_options(folder.path()) };
        let store = TaskStore::open_sqlite(&options).await.expect("a store");
        let lease = owned(&store, "t", &replica("a", 1)).await;
        store.append(&lease, &thread("t"), 0, vec![plain("one")]).await.expect("a commit");
        let refused = TaskStore::open_sqlite(&options).await.expect_err("it is open");
        assert!(refused.to_string().contains("host.db.sock"), "{refused}");
        drop(store);
        let store = TaskStore::open_sqlite(&options).await.expect("it was closed");
        assert_eq!(store.records(&thread("t"), 0, 10).await.expect("records").len(), 1);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&options.path.metadata().expect("a file").permissions());
        assert_eq!(mode & 0o077, 0, "others may read it: {mode:o}");
    }
}

#[tokio::test]
async fn a_database_that_is_restarted_delays_and_loses_nothing() {
    let Some(server) = postgres() else { return };
    let store = server.store().await;
    let lease = owned(&store, "t", &replica("a", 1)).await;
    for (mode, next) in [("fast", 0), ("immediate", 1)] {
        store.append(&lease, &thread("t"), next, vec![plain("before")]).await.expect("a commit");
        server.stop(mode);
        let refused = store.append(&lease, &thread("t"), next + 1, vec![plain("meanwhile")]).await;
        assert!(refused.as_ref().is_err_and(StoreError::is_temporary), "{refused:?}");
        server.begin();
        let records = store.records(&thread("t"), 0, 10).await.expect("it is back");
        assert_eq!(records.len() as u64, next + 1);
    }
    store.append(&lease, &thread("t"), 2, vec![plain("after")]).await.expect("a commit");
}

#[tokio::test]
async fn a_store_of_a_newer_release_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = sqlite_options(folder.path());
    drop(TaskStore::open_sqlite(&options).await.expect("a store"));
    let database = rusqlite::Connection::open(&options.path).expect("a database");
    database.execute("UPDATE counters SET value = 99 WHERE name = 'schema'", []).expect("a change");
    drop(database);
    let refused = TaskStore::open_sqlite(&options).await.expect_err("it is newer");
    assert!(matches!(refused, StoreError::SchemaTooNew { found: 99, .. }), "{refused}");
}

/// With patience for a minute, which a certificate must not use up.
#[tokio::test]
async fn a_certificate_that_is_trusted_opens_the_store_and_another_is_refused_at_once() {
    let Some(server) = PostgresServer::start_tls(Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let options = |address: &str| {
        let (limit, patience) = (Duration::from_secs(10), Duration::from_secs(60));
        PostgresOptions::parse(address, &PasswordSources::default(), limit, patience).expect("an address")
    };
    let trusted = format!("{}&sslrootcert={}", server.url(), server.authority().display());
    let store = TaskStore::open_postgres(&options(&trusted)).await.expect("a store");
    create(&store, "t", None).await;
    assert!(store.task(&thread("t")).await.expect("an answer").is_some());
    let begun = Instant::now();
    let refused = TaskStore::open_postgres(&options(&server.url())).await.expect_err("not trusted");
    assert!(matches!(refused, StoreError::Untrusted(_)), "{refused}");
    assert!(refused.to_string().contains("sslrootcert"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it is final");
    let plain = server.url().replace("sslmode=require", "sslmode=disable");
    let refused = TaskStore::open_postgres(&options(&plain)).await.expect_err("without TLS");
    assert!(refused.to_string().contains("pg_hba.conf"), "{refused}");
}

#[tokio::test]
async fn a_password_opens_the_store_and_another_does_not() {
    let Some(server) = postgres() else { return };
    server.require_password("hunter2");
    for (password, opens) in [(Some("hunter2"), true), (Some("wrong"), false), (None, false)] {
        let options = PostgresOptions { password: password.map(str::to_owned), ..server.options() };
        let opened = TaskStore::open_postgres(&options).await;
        assert_eq!(opened.is_ok(), opens, "{password:?}");
        assert!(opened.map_err(|error| error.to_string()).err().is_none_or(|text| !text.contains("wrong")));
    }
}
