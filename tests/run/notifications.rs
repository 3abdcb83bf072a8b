//! Notifications: a row before each is sent, the order of a target, retries, and what is left when the object comes back.

use curfew::api::recovery;
use curfew::base::limits::{NOTIFICATION_BYTES, NOTIFICATIONS_KEPT, NOTIFICATIONS_PENDING};
use curfew::protocol::notification::NotificationReport;
use curfew::run::{
    Command, DeploymentTarget, Event, Notification, NotificationStatus, NotifySettings, Settings,
};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, START};

const DAY: u64 = 86_400_000;

/// A gate whose events go to `a`, and failures to `b`.
fn asking() -> Value {
    json!({
        "nodes": [{"id": "ask", "gate": {"prompt": "Pay?"}}],
        "timeout_ms": null,
        "notify": [
            {"on": ["gate_opened", "gate_decided", "run_completed"], "url": "https://a.example"},
            {"on": ["run_completed", "run_failed"], "url": "https://b.example", "secret": "${secret.SIGN}"},
        ],
    })
}

fn failed(message: &str, retry_after_ms: Option<u64>) -> NotificationReport {
    NotificationReport::Failed {
        message: message.into(),
        retry_after_ms,
    }
}

trait Answers {
    fn answer(&mut self, number: u64, report: NotificationReport) -> &mut Self;
    fn delivered_to_target(&mut self, number: u64) -> &mut Self;
    fn notification(&self, number: u64) -> &Notification;
    fn statuses(&self) -> Vec<String>;
}

impl Answers for Driver {
    fn answer(&mut self, number: u64, report: NotificationReport) -> &mut Driver {
        self.feed(Event::NotificationAnswered { number, report })
    }

    fn delivered_to_target(&mut self, number: u64) -> &mut Driver {
        self.answer(number, NotificationReport::Delivered)
    }

    fn notification(&self, number: u64) -> &Notification {
        let found = self.run.notifications().find(|it| it.number == number);
        found.expect("it is kept")
    }

    fn statuses(&self) -> Vec<String> {
        let line = |it: &Notification| format!("{} {} {:?}", it.number, it.kind, it.status);
        self.run.notifications().map(line).collect()
    }
}

/// The body of a notification that the last decision sends.
fn sent_body(run: &Driver, number: u64) -> Value {
    let sent = run.decision.commands().iter().find_map(|command| match command {
        Command::SendNotification(it) if it.number == number => Some(it.text("run-1", None)),
        _others => None,
    });
    serde_json::from_str(&sent.expect("it is sent")).expect("a body is JSON")
}

#[test]
fn a_notification_is_a_row_in_the_commit_of_its_event_and_sent_after_it() {
    let mut run = Driver::start(asking());
    run.check(
        r#"
        snapshot
        input {"x":1}
        run waiting
        token t1 ask awaiting_human@1
        gate g1 open "Pay?" approve|reject
        notification 1 https://a.example gate_opened pending
        alarm 31000
        notify 1 https://a.example gate_opened
        announce
        announce g1 open
    "#,
    );
    run.at(2_000)
        .delivered_to_target(1)
        .check("notification 1 https://a.example gate_opened delivered after 1");
    assert_eq!(run.run.next_deadline(), None, "nothing keeps the run awake");
}

#[test]
fn a_run_that_notifies_nobody_has_no_row_of_it() {
    let mut document = asking();
    document["notify"] = json!(null);
    let mut run = Driver::start(document);
    assert_eq!(run.lines_of("notification"), [""; 0]);
    run.decide("g1", "approve");
    assert_eq!(run.lines_of("notification"), [""; 0]);
    assert_eq!(run.run.notifications().count(), 0);
}

#[test]
fn a_target_gets_them_one_after_the_other_and_delays_no_other_target() {
    let mut run = Driver::start(asking());
    run.at(2_000).decide("g1", "approve");
    assert_eq!(
        run.lines_of("notification"),
        [
            "notification 2 https://a.example gate_decided pending",
            "notification 3 https://a.example run_completed pending",
            "notification 4 https://b.example run_completed pending",
        ]
    );
    assert_eq!(
        run.lines_of("notify"),
        ["notify 4 https://b.example run_completed"]
    );
    assert_eq!(run.run.header.status.name(), "completed");
    run.at(2_100).delivered_to_target(4);
    assert_eq!(run.lines_of("notify"), [""; 0]);
    run.at(2_200).delivered_to_target(1);
    assert_eq!(
        run.lines_of("notify"),
        ["notify 2 https://a.example gate_decided"]
    );
    run.delivered_to_target(2);
    assert_eq!(
        run.lines_of("notify"),
        ["notify 3 https://a.example run_completed"]
    );
    run.delivered_to_target(3);
    let all = [
        "1 gate_opened",
        "2 gate_decided",
        "3 run_completed",
        "4 run_completed",
    ];
    assert_eq!(run.statuses(), all.map(|it| format!("{it} Delivered")));
}

/// The body is the event as `/events` shows it, the run and the gate.
#[test]
fn the_body_is_the_event_with_its_run_and_gate() {
    let mut run = Driver::start(asking());
    let mut body = sent_body(&run, 1);
    let gate = run.run.gates().next().expect("a gate").view("run-1");
    assert_eq!(body["gate"], gate);
    assert_eq!(body["run"]["status"], "waiting");
    assert_eq!(body["run"]["workflow_id"], "flow");
    let shown = run.run.new_events(run.decision.writes(), 0);
    let shown = shown.into_iter().find(|event| json!(event.kind) == "gate_opened");
    let shown = recovery::event("run-1", shown.expect("its event"));
    let fields = body.as_object_mut().expect("an object");
    fields.retain(|name, _| !["run", "gate"].contains(&name.as_str()));
    assert_eq!(body, shown);
    run.cancel(Some("too late"));
    let end = run.notification(1);
    assert_eq!(
        end.text("run-1", Some("https://c.example/"))
            .matches("https://c.example/v1/runs/run-1")
            .count(),
        3
    );
}

#[test]
fn an_end_has_its_error() {
    let mut document = asking();
    document["nodes"] = json!([{"id": "work", "action_id": "work"}]);
    let mut run = Driver::start(document);
    run.fail("t1@1");
    let body = sent_body(&run, 1);
    assert_eq!(
        (&body["kind"], &body["run"]["status"]),
        (&json!("run_failed"), &json!("failed"))
    );
    assert_eq!(body["run"]["error"]["node_id"], "work");
    assert_eq!(body["gate"], Value::Null);
}

#[test]
fn a_failed_attempt_is_repeated_later_and_later_under_the_same_id() {
    let mut run = Driver::start(asking());
    let id = run.notification(1).id.clone();
    let mut delays = Vec::new();
    for attempt in 1..=12_u64 {
        run.answer(1, failed("no", None));
        let next = run.run.next_deadline().expect("another attempt");
        delays.push(next - run.now);
        let saved = run.lines_of("notification");
        assert_eq!(
            saved,
            [format!(
                "notification 1 https://a.example gate_opened pending after {attempt}: no"
            )]
        );
        run.at(next - 1).fire_alarm("");
        assert_eq!(run.lines_of("notify"), [""; 0]);
        run.at(next).fire_alarm("");
        assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example gate_opened"]);
    }
    for (attempt, delay) in delays.iter().enumerate() {
        let least = (5_000_u64 << attempt).min(3_600_000);
        assert!((least..=least * 3 / 2).contains(delay), "{attempt}: {delay}");
    }
    assert_eq!(run.notification(1).id, id);
    run.delivered_to_target(1);
    assert_eq!(run.notification(1).attempts, 13);
}

#[test]
fn a_target_may_ask_for_more_time_but_not_for_days() {
    for (asked, least, most) in [
        (1, 5_000, 7_500),
        (60_000, 60_000, 60_000),
        (DAY, 3_600_000, 3_600_000),
    ] {
        let mut run = Driver::start(asking());
        run.answer(1, failed("busy", Some(asked)));
        let delay = run.run.next_deadline().expect("another attempt") - run.now;
        assert!((least..=most).contains(&delay), "{asked}: {delay}");
    }
}

#[test]
fn after_a_day_a_notification_is_given_up_and_the_next_one_is_tried() {
    let settings = Settings {
        retention_ms: 30 * DAY,
        ..SETTINGS
    };
    let mut run = Driver::start_with(settings, asking(), json!({}));
    run.at(START + DAY / 2)
        .decide("g1", "approve")
        .delivered_to_target(4);
    run.at(START + DAY - 1_000)
        .wake("")
        .answer(1, failed("down", None));
    assert_eq!(
        run.run.next_deadline(),
        Some(START + DAY),
        "the last attempt is at the end of the time"
    );
    run.at(START + DAY).fire_alarm("");
    assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example gate_opened"]);
    run.answer(1, failed("down", None));
    assert_eq!(
        run.lines_of("notification"),
        ["notification 1 https://a.example gate_opened failed after 2: down"]
    );
    assert_eq!(
        run.lines_of("notify"),
        ["notify 2 https://a.example gate_decided"]
    );
    run.answer(2, failed("down", None));
    assert_eq!(
        run.notification(2).status,
        NotificationStatus::Pending,
        "it has its own day"
    );
    // One that became too old while it waited is tried once.
    run.at(START + 2 * DAY)
        .fire_alarm("")
        .answer(2, failed("down", None));
    assert_eq!(
        run.lines_of("notify"),
        ["notify 3 https://a.example run_completed"]
    );
    run.answer(3, failed("down", None));
    assert_eq!(run.notification(3).status, NotificationStatus::Failed);
    assert_eq!(run.notification(3).attempts, 1);
}

#[test]
fn a_target_that_wants_no_more_gets_nothing_more_also_after_a_reload() {
    let mut run = Driver::start(asking());
    run.decide("g1", "approve").answer(1, NotificationReport::Gone);
    assert_eq!(
        run.statuses(),
        [
            "1 gate_opened Refused",
            "2 gate_decided Refused",
            "3 run_completed Refused",
            "4 run_completed Pending"
        ]
    );
    run.delivered_to_target(4);
    run.reload().feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    assert_eq!(run.status_line(), "waiting ask:awaiting_human");
    assert_eq!(run.lines_of("notification"), [""; 0]);
    run.decide("g1", "approve").decide("g2", "approve");
    assert_eq!(
        run.lines_of("notification"),
        ["notification 5 https://b.example run_completed pending"]
    );
}

#[test]
fn one_that_is_refused_stops_no_other() {
    let mut run = Driver::start(asking());
    run.decide("g1", "approve");
    let message = "\"10.0.0.1\" is a private address".to_string();
    run.answer(1, NotificationReport::Refused { message });
    assert_eq!(
        run.lines_of("notification"),
        ["notification 1 https://a.example gate_opened refused after 1: \"10.0.0.1\" is a private address"]
    );
    assert_eq!(
        run.lines_of("notify"),
        ["notify 2 https://a.example gate_decided"]
    );
}

#[test]
fn an_answer_that_is_lost_or_comes_twice() {
    let mut run = Driver::start(asking());
    run.at(START + 30_000).fire_alarm("");
    assert_eq!(
        run.lines_of("notify"),
        ["notify 1 https://a.example gate_opened"],
        "no answer came"
    );
    run.delivered_to_target(1);
    run.answer(1, failed("late", None)).check("");
    run.answer(7, NotificationReport::Delivered).check("");
    assert_eq!(run.statuses(), ["1 gate_opened Delivered"]);
}

#[test]
fn after_a_crash_ids_and_order_are_the_same() {
    let mut run = Driver::start(asking());
    run.answer(1, failed("down", None));
    let (id, next) = (run.notification(1).id.clone(), run.run.next_deadline());
    run.at(2_000).decide("g1", "approve");
    run.reload();
    assert_eq!(
        run.run.next_deadline(),
        Some(0),
        "the other target's may have been sent: it is sent again"
    );
    run.load();
    assert_eq!(
        run.lines_of("notify"),
        ["notify 4 https://b.example run_completed"]
    );
    assert_eq!(
        run.run.next_deadline(),
        next,
        "the first target's waits for its time"
    );
    run.at(next.expect("a time")).fire_alarm("");
    assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example gate_opened"]);
    let first = run.notification(1);
    assert_eq!(
        (first.id.as_str(), first.attempts, first.last_error.as_deref()),
        (id.as_str(), 1, Some("down"))
    );
    run.delivered_to_target(1).reload().load();
    assert_eq!(
        run.lines_of("notify"),
        [
            "notify 2 https://a.example gate_decided",
            "notify 4 https://b.example run_completed"
        ]
    );
    let ids: std::collections::BTreeSet<&str> = run.run.notifications().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), 4, "no two have the same id");
}

#[test]
fn the_retention_ends_it() {
    let mut run = Driver::start(asking());
    run.cancel(None);
    run.at(START + SETTINGS.retention_ms)
        .fire_alarm("")
        .check("delete");
}

#[test]
fn a_pause_stops_no_notification() {
    let mut document = asking();
    document["notify"][0]["on"] = json!(["run_paused", "run_resumed"]);
    let mut run = Driver::start(document);
    run.pause();
    assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example run_paused"]);
    run.answer(1, failed("no", None));
    let next = run.run.next_deadline().expect("another attempt");
    run.at(next).fire_alarm("");
    assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example run_paused"]);
}

#[test]
fn calls_to_executors_come_first_and_what_found_none_is_sent_at_once() {
    let mut document = asking();
    document["nodes"] = json!([{"id": "work", "action_id": "work"}]);
    document["notify"][0]["on"] = json!(["run_started"]);
    let mut run = Driver::start_in(1, document);
    assert_eq!(
        (run.lines_of("dispatch").len(), run.lines_of("notify").len()),
        (1, 0)
    );
    assert_eq!(run.run.next_deadline(), Some(START));
    run.fire_alarm("t1@1");
    assert_eq!(run.lines_of("notify"), ["notify 1 https://a.example run_started"]);
}

#[test]
fn few_targets_are_called_at_a_time() {
    let targets: Vec<Value> = (0..9)
        .map(|n| json!({"on": ["run_started"], "url": format!("https://{n}.example")}))
        .collect();
    let mut run =
        Driver::start(json!({"nodes": [{"id": "ask", "gate": {}}], "timeout_ms": null, "notify": targets}));
    assert_eq!(run.lines_of("notify").len(), 4);
    assert_eq!(
        run.run.next_deadline(),
        Some(START + 30_000),
        "no wake without a free slot"
    );
    run.delivered_to_target(1).answer(2, failed("no", None));
    assert_eq!(run.lines_of("notify"), ["notify 6 https://5.example run_started"]);
}

/// A loop of gates, of which none is delivered.
#[test]
fn too_many_become_a_summary_and_ends_are_never_left_out() {
    let mut document = asking();
    document["nodes"] = json!([{"id": "start"}, {"id": "ask", "gate": {}}]);
    document["transitions"] = json!([{"from_node_id": "start", "to_node_id": "ask", "spawn_count": 300}]);
    document["notify"] =
        json!([{"on": ["gate_opened", "gate_decided", "run_cancelled"], "url": "https://a.example"}]);
    let mut run = Driver::start(document);
    let saved = run.lines_of("notification");
    assert_eq!(saved.len(), NOTIFICATIONS_PENDING + 1);
    let last = saved.last().expect("the summary");
    assert!(
        last.starts_with("notification 101 https://a.example notifications_skipped pending for 200 ("),
        "{last}"
    );
    run.decide("g2", "approve");
    let saved = run.lines_of("notification");
    assert!(saved.len() == 1 && saved[0].contains("for 201"), "{saved:?}");
    run.cancel(None);
    assert_eq!(
        run.lines_of("notification"),
        ["notification 102 https://a.example run_cancelled pending"]
    );
    for number in 1..=102 {
        run.delivered_to_target(number);
        if number == 100 {
            let body = sent_body(&run, 101);
            assert_eq!(body["kind"], "notifications_skipped");
            assert_eq!(
                body["skipped"]["kinds"],
                json!({"gate_decided": 1, "gate_opened": 200})
            );
            run.reload().load();
        }
    }
    assert_eq!(
        run.run.notifications().count(),
        NOTIFICATIONS_KEPT,
        "the oldest are gone"
    );
    assert_eq!(run.lines_of("unnotification"), ["unnotification 2"]);
    assert_eq!(run.run.next_deadline(), Some(run.now + SETTINGS.retention_ms));
}

#[test]
fn a_body_is_bounded_and_says_what_was_cut() {
    let mut document = asking();
    document["nodes"][0]["gate"] = json!({"prompt": "p".repeat(60_000), "choices": ["a", "b"]});
    let run = Driver::start(document);
    let body = sent_body(&run, 1);
    assert!(
        body.to_string().len() <= NOTIFICATION_BYTES,
        "{}",
        body.to_string().len()
    );
    assert_eq!(body["gate"]["truncated"], true);
    let prompt = body["gate"]["prompt"].as_str().expect("a text");
    assert!(prompt.ends_with("[cut, 60000 bytes in all]"), "{prompt}");
    let mut document = asking();
    document["notify"][1]["on"] = json!(["run_cancelled"]);
    let mut run = Driver::start(document);
    run.cancel(Some(&"r".repeat(4_000)));
    let body = sent_body(&run, 2);
    assert!(
        body.to_string().len() <= NOTIFICATION_BYTES && body["kind"] == "run_cancelled",
        "{body}"
    );
}

fn with_targets(targets: Value) -> Settings {
    let targets = DeploymentTarget::parse(&targets.to_string()).expect("valid targets");
    let notify = NotifySettings {
        targets: targets.leak(),
        ..NotifySettings::DEFAULT
    };
    Settings { notify, ..SETTINGS }
}

#[test]
fn targets_of_the_deployment_count_when_the_event_happens() {
    let mut run = Driver::start(asking());
    let settings = with_targets(json!([
        {"on": ["gate_decided"], "url": "https://ops.example", "workflows": ["fl*"]},
        {"on": ["gate_decided"], "url": "https://other.example", "workflows": ["other"]},
        {"on": ["gate_decided"], "url": "https://a.example"},
    ]));
    run.redeploy(settings).decide("g1", "approve");
    let saved = run.lines_of("notification");
    assert_eq!(
        saved,
        [
            "notification 2 https://a.example gate_decided pending",
            "notification 3 https://ops.example gate_decided pending",
            "notification 4 https://a.example run_completed pending",
            "notification 5 https://b.example run_completed pending",
        ],
        "an address that the workflow names, too, gets it once"
    );
    assert!(run.notification(3).of_deployment && !run.notification(2).of_deployment);
}

#[test]
fn many_targets_share_what_may_wait() {
    let targets: Vec<Value> = (0..10)
        .map(|n| json!({"on": ["gate_opened"], "url": format!("https://{n}.example")}))
        .collect();
    let run = Driver::start(json!({
        "nodes": [{"id": "start"}, {"id": "ask", "gate": {}}],
        "transitions": [{"from_node_id": "start", "to_node_id": "ask", "spawn_count": 90}],
        "timeout_ms": null,
        "notify": targets,
    }));
    let kinds: Vec<&str> = run.run.notifications().map(|it| it.kind.as_str()).collect();
    let summaries = kinds
        .iter()
        .filter(|kind| **kind == "notifications_skipped")
        .count();
    assert_eq!((kinds.len(), summaries), (510, 10));
    let skipped = run.run.notifications().filter_map(|it| it.skipped.as_ref());
    assert_eq!(skipped.map(|it| it.count).sum::<u64>(), 900 - 500);
}

/// With one call for each decision and all slots taken, those without an answer are sent again one by one.
#[test]
fn what_waits_for_a_slot_takes_no_call() {
    let targets: Vec<Value> = (0..6)
        .map(|n| json!({"on": ["run_started"], "url": format!("https://{n}.example")}))
        .collect();
    let document = json!({"nodes": [{"id": "ask", "gate": {}}], "timeout_ms": null, "notify": targets});
    let mut run = Driver::start_in(1, document);
    for expected in [1, 1, 1, 0] {
        run.fire_alarm("");
        assert_eq!(run.lines_of("notify").len(), expected);
    }
    run.at(START + 30_000);
    for number in 1..=4 {
        run.fire_alarm("");
        let again = format!("notify {number} https://{}.example run_started", number - 1);
        assert_eq!(run.lines_of("notify"), [again]);
    }
    let message = "m".repeat(5_000);
    run.answer(1, failed(&message, None));
    assert!(
        run.notification(1)
            .last_error
            .as_ref()
            .is_some_and(|error| error.len() < 1_200)
    );
}
