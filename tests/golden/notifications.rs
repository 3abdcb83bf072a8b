//! Rows of notifications, and the messages between a run's object and an executor.

use curfew::protocol::notification::{NotificationOrder, NotificationReport};
use curfew::run::{Event, Notification};
use serde_json::{Value, json};

use super::{check_json, read};
use crate::run::driver::Driver;

fn run() -> Driver {
    let target = json!({"on": ["gate_opened", "run_cancelled"], "url": "https://x.example/hook?k=${secret.KEY}",
        "headers": {"authorization": "Bearer ${secret.TOKEN}"}, "secret": "${secret.SIGN}"});
    let gate = json!({"prompt": "Pay?", "choices": ["yes", "no"], "timeout_ms": 60_000});
    Driver::start(
        json!({"id": "bill", "nodes": [{"id": "ask", "gate": gate}], "notify": [target], "tags": ["eu"]}),
    )
}

fn answered(report: NotificationReport) -> Driver {
    let mut run = run();
    run.at(2_000)
        .feed(Event::NotificationAnswered { number: 1, report });
    run
}

fn row(run: &Driver) -> Value {
    let row = &run.store.run["notification/000000000001"];
    serde_json::from_str(row).expect("a row is JSON")
}

#[test]
fn notification_rows_are_stable() {
    let failed = NotificationReport::Failed {
        message: "the target answered with status 503".into(),
        retry_after_ms: Some(20_000),
    };
    for (name, run) in [
        ("row_notification_pending.json", run()),
        ("row_notification_retried.json", answered(failed)),
        (
            "row_notification_delivered.json",
            answered(NotificationReport::Delivered),
        ),
        ("row_notification_gone.json", answered(NotificationReport::Gone)),
    ] {
        check_json(name, &row(&run));
        let saved: Notification = serde_json::from_str(&read(name)).expect("a row can be read");
        assert_eq!(json!(saved), row(&run), "{name}");
    }
}

#[test]
fn a_summary_row_is_stable() {
    let skipped = json!({"count": 3, "first_seq": 7, "last_seq": 12, "kinds": {"gate_opened": 3}});
    let row = json!({"id": "ntf_0", "target": {"url": "https://x.example"}, "of_deployment": true, "kind": "notifications_skipped",
        "seq": 7, "status": "pending", "created_at": 1_000, "skipped": skipped, "body": {"kind": "notifications_skipped"}});
    let saved: Notification = serde_json::from_value(row).expect("a row");
    check_json("row_notification_summary.json", &json!(saved));
}

#[test]
fn the_messages_with_the_executor_are_stable() {
    let run = run();
    let notification = run.run.notifications().next().expect("one is pending");
    let order = NotificationOrder {
        run_id: "run-1".into(),
        id: notification.id.clone(),
        target: notification.target.clone(),
        body: notification.text("run-1", Some("https://curfew.example")),
        timeout_ms: 15_000,
    };
    check_json("notification_order.json", &json!(order));
    assert_eq!(
        serde_json::from_str::<NotificationOrder>(&read("notification_order.json")).ok(),
        Some(order)
    );
    let reports = [
        NotificationReport::Delivered,
        NotificationReport::Gone,
        NotificationReport::Refused {
            message: "\"10.0.0.1\" is a private address".into(),
        },
        NotificationReport::failed("no answer in time"),
        NotificationReport::Failed {
            message: "the target answered with status 429".into(),
            retry_after_ms: Some(7_000),
        },
    ];
    check_json("notification_reports.json", &json!(reports));
    let read: Vec<NotificationReport> =
        serde_json::from_str(&read("notification_reports.json")).expect("reports");
    assert_eq!(read, reports);
    // A later build may add fields.
    let later = json!({"outcome": "delivered", "status": 200});
    assert_eq!(
        serde_json::from_value::<NotificationReport>(later).ok(),
        Some(NotificationReport::Delivered)
    );
}
