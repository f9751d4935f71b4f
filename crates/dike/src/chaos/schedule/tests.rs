use proptest::prelude::*;

use super::*;

const MACHINES: &str = r#"
    hosts = [
        { name = "n1", ssh = "root@n1" },
        { name = "n2", hook = "/opt/hook" },
        { name = "n3", ssh = "root@n3", power_on = "virsh start n3" },
    ]
    processes = [
        { name = "db-1", host = "n1", pid = 7, restart = "start db" },
        { name = "db-3", host = "n3", pid = 8 },
        { name = "oracle", pid_file = "/run/oracle", restart = "start oracle", timestamp_source = true },
    ]
"#;

fn judge(faults: &str) -> Result<(), String> {
    let machines: Machines = toml::from_str(MACHINES).expect("the machines are read");
    let text = format!("faults = [{faults}]");
    let schedule: Schedule = toml::from_str(&text).map_err(|error| error.to_string())?;
    let endpoints = ["e1".to_owned(), "e2".to_owned()];
    schedule.check(&machines, &endpoints, Some(300.0)).map_err(|error| error.to_string())
}

#[test]
fn schedules_that_can_be_run_are_accepted() {
    let accepted = [
        r#"{ at_s = 60, for_s = 30, fault = "cpu", where = ["n1", "n2", "localhost"] }"#,
        r#"{ at_s = 0, for_s = 0.5, fault = "memory", percent_of_available = 50, where = ["n1"] }"#,
        r#"{ at_s = 0, for_s = 9, fault = "disk_write", directory = "/data", where = ["n1"] },
           { at_s = 0, for_s = 9, fault = "disk_read", directory = "/data", where = ["n1"] }"#,
        r#"{ at_s = 1, for_s = 5, every_s = 20, times = 3, fault = "pause", where = ["db-1"] }"#,
        r#"{ at_s = 1, for_s = 5, fault = "network_delay", delay_ms = 50, where = ["e1", "n2"] },
           { at_s = 1, for_s = 5, fault = "network_loss", loss_percent = 1, where = ["e1"] },
           { at_s = 6, for_s = 5, fault = "network_delay", jitter_ms = 5, direction = "to_client",
             where = ["e1"] }"#,
        r#"{ at_s = 1, fault = "network_reset", where = ["e1"] }"#,
        r#"{ at_s = 1, for_s = 3, fault = "kill_timestamp_source" }"#,
        r#"{ at_s = 1, fault = "kill", stays_down = true, where = ["db-3"] }"#,
        r#"{ at_s = 1, for_s = 100, fault = "shutdown", where = ["n3"] }"#,
        r#"{ at_s = 1, for_s = 1, fault = "clock_skew", offset_ms = -500, where = ["n1"] }"#,
        r#"{ at_s = 1, for_s = 1, fault = "custom", name = "x", parameters = { a = "b" }, where = ["n2"] }"#,
    ];
    for faults in accepted {
        assert_eq!(judge(faults), Ok(()), "{faults}");
    }
}

#[test]
fn schedules_that_make_no_sense_are_refused_with_the_reason() {
    let refused = [
        (r#"{ at_s = 1, for_s = 1, fault = "cpux", where = ["n1"] }"#, "unknown variant `cpux`"),
        (r#"{ at_s = 1, for_s = 1, where = ["n1"] }"#, "missing field `fault`"),
        (r#"{ for_s = 1, fault = "cpu", where = ["n1"] }"#, "missing field `at_s`"),
        (r#"{ at_s = 1, for_s = 1, fault = "cpu", percent = 3, where = ["n1"] }"#, "unknown field `percent`"),
        (
            r#"{ at_s = 1, for_s = 1, fault = "pause", percent = 3, where = ["db-1"] }"#,
            "unknown field `percent`",
        ),
        (r#"{ at_s = "soon", for_s = 1, fault = "cpu", where = ["n1"] }"#, "`at_s`"),
        (r#"{ at_s = -1, for_s = 1, fault = "cpu", where = ["n1"] }"#, "`at_s` has to be"),
        (r#"{ at_s = nan, for_s = 1, fault = "cpu", where = ["n1"] }"#, "at_s"),
        (r#"{ at_s = 1, for_s = -1, fault = "cpu", where = ["n1"] }"#, "`for_s` has to be"),
        (r#"{ at_s = 1, for_s = 0, fault = "cpu", where = ["n1"] }"#, "`for_s` is missing"),
        (r#"{ at_s = 1, fault = "cpu", where = ["n1"] }"#, "`for_s` is missing"),
        (r#"{ at_s = 1, for_s = 1, fault = "network_reset", where = ["e1"] }"#, "leave `for_s` out"),
        (r#"{ at_s = 300, for_s = 1, fault = "cpu", where = ["n1"] }"#, "after the run"),
        (r#"{ at_s = 1, for_s = 5, every_s = 4, times = 2, fault = "cpu", where = ["n1"] }"#, "`times`"),
        (r#"{ at_s = 1, for_s = 5, times = 2, fault = "cpu", where = ["n1"] }"#, "`times`"),
        (
            r#"{ at_s = 1, for_s = 5, every_s = 200, times = 3, fault = "cpu", where = ["n1"] }"#,
            "after the run",
        ),
        (r#"{ at_s = 1, for_s = 1, fault = "cpu", load_percent = 101, where = ["n1"] }"#, "1..100"),
        (r#"{ at_s = 1, for_s = 1, fault = "memory", where = ["n1"] }"#, "exactly one"),
        (r#"{ at_s = 1, for_s = 1, fault = "disk_read", directory = "data", where = ["n1"] }"#, "absolute"),
        (r#"{ at_s = 1, for_s = 1, fault = "network_delay", where = ["e1"] }"#, "more than 0"),
        (r#"{ at_s = 1, for_s = 1, fault = "clock_skew", offset_ms = 0, where = ["n1"] }"#, "not 0"),
        (r#"{ at_s = 1, for_s = 1, fault = "cpu" }"#, "`where` is missing"),
        (r#"{ at_s = 1, for_s = 1, fault = "cpu", where = ["e1"] }"#, "only at localhost, n1, n2, n3"),
        (r#"{ at_s = 1, for_s = 1, fault = "pause", where = ["n1"] }"#, "only at db-1, db-3, oracle"),
        (
            r#"{ at_s = 1, for_s = 1, fault = "network_delay", delay_ms = 1, where = ["n1"] }"#,
            "only at e1, e2, n2",
        ),
        (r#"{ at_s = 1, for_s = 1, fault = "custom", name = "x", where = ["n1"] }"#, "only at n2"),
        (r#"{ at_s = 1, for_s = 1, fault = "kill_timestamp_source", where = ["db-1"] }"#, "is not marked"),
        (r#"{ at_s = 1, for_s = 1, fault = "kill", where = ["db-3"] }"#, "no `restart` command"),
        (r#"{ at_s = 1, for_s = 1, fault = "shutdown", where = ["n1"] }"#, "no `power_on` command"),
        (r#"{ at_s = 1, for_s = 1, fault = "shutdown", where = ["localhost"] }"#, "the machine Dike runs on"),
    ];
    for (faults, reason) in refused {
        let problem = judge(faults).expect_err(faults);
        assert!(problem.contains(reason), "{faults}: {problem}");
    }
}

#[test]
fn faults_that_cannot_hold_together_are_refused() {
    let at = |at_s: u32, rest: &str| format!("{{ at_s = {at_s}, for_s = 10, {rest} }}");
    let exclusive = [
        (at(1, r#"fault = "cpu", where = ["n1"]"#), at(10, r#"fault = "cpu", where = ["n2", "n1"]"#)),
        (at(1, r#"fault = "pause", where = ["db-1"]"#), at(1, r#"fault = "kill", where = ["db-1"]"#)),
        (at(1, r#"fault = "kill_timestamp_source""#), at(5, r#"fault = "pause", where = ["oracle"]"#)),
        (
            at(1, r#"fault = "network_partition", where = ["e1"]"#),
            at(5, r#"fault = "network_half_open", where = ["e1"]"#),
        ),
        (at(1, r#"fault = "shutdown", where = ["n3"]"#), at(5, r#"fault = "pause", where = ["db-3"]"#)),
        (at(5, r#"fault = "cpu", where = ["n3"]"#), at(1, r#"fault = "shutdown", where = ["n3"]"#)),
        (
            r#"{ at_s = 1, fault = "kill", stays_down = true, where = ["db-1"] }"#.to_owned(),
            at(200, r#"fault = "pause", where = ["db-1"]"#),
        ),
    ];
    for (one, other) in exclusive {
        let problem = judge(&format!("{one}, {other}")).expect_err(&other);
        assert!(problem.contains("overlaps with fault 1"), "{one} {other}: {problem}");
    }
    let repeated = r#"{ at_s = 1, for_s = 5, every_s = 10, times = 5, fault = "cpu", where = ["n1"] }"#;
    assert!(judge(&format!("{repeated}, {}", at(17, r#"fault = "cpu", where = ["n1"]"#))).is_err());
    let gap = r#"{ at_s = 16, for_s = 5, fault = "cpu", where = ["n1"] }"#;
    assert_eq!(judge(&format!("{repeated}, {gap}")), Ok(()));
}

#[test]
fn limits_have_to_be_times() {
    for (limit_s, grace_s) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
        let schedule = Schedule { limit_s, grace_s, ..Schedule::default() };
        assert_eq!(schedule.check(&Machines::default(), &[], None), Err(ScheduleError::Limit));
    }
}

#[test]
fn a_schedule_is_written_as_it_is_read() {
    let text = r#"
        seed = 3
        [[faults]]
        at_s = 60.0
        for_s = 30.0
        fault = "network_delay"
        delay_ms = 50
        where = ["e1"]
        [[faults]]
        at_s = 1.5
        fault = "network_reset"
        where = ["e1"]
    "#;
    let schedule: Schedule = toml::from_str(text).unwrap();
    let written = serde_json::to_string(&schedule).unwrap();
    assert_eq!(serde_json::from_str::<Schedule>(&written).unwrap(), schedule);
    assert!(written.contains(r#""where":["e1"]"#), "{written}");
}

proptest! {
    #[test]
    fn any_numbers_are_judged_without_a_panic(
        at_s: f64, for_s: Option<f64>, every_s: Option<f64>, times: u32, limit_s: f64,
        delay_ms: u64, jitter_ms: u64, kib_per_s: u64, mib: Option<u64>, offset_ms: i64,
    ) {
        let direction = super::super::fault::Direction::Both;
        let faults = [
            (Fault::NetworkDelay { delay_ms, jitter_ms, direction }, "e1"),
            (Fault::NetworkRate { kib_per_s, direction }, "e1"),
            (Fault::Memory { mib, percent_of_available: None }, "localhost"),
            (Fault::ClockSkew { offset_ms }, "localhost"),
        ];
        for (fault, place) in faults {
            let places = vec![place.to_owned()];
            let faults = vec![ScheduledFault { at_s, for_s, every_s, times, places, fault }];
            let schedule = Schedule { limit_s, faults, ..Schedule::default() };
            let _ = schedule.check(&Machines::default(), &["e1".to_owned()], None);
        }
    }
}
