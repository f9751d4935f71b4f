//! One test for each reason to refuse, and one for each way to say yes.

use clap::Parser;
use plimsoll_args::JsonOutput;
use plimsoll_engine::{Cluster, describe_tables};
use plimsoll_types::TableSpec;

use super::plan::*;
use super::*;
use crate::workload;

/// The program with this command only.
#[derive(Debug, Parser)]
#[command(name = "plimsoll")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<BenchArgs>),
}

/// What a command line amounts to on a machine of two cores and 16 GB.
fn plan(line: &str) -> Result<BenchPlan, String> {
    let words = std::iter::once("plimsoll").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Bench(args) = cli.command;
    args.validate(2, 16_000_000_000).map_err(|refusal| refusal.to_string())
}

/// A workload's settings, in the order of their names.
fn scale(plan: &BenchPlan) -> String {
    let settings = plan.scale.config().into_iter().map(|(name, value)| (name.to_owned(), value));
    serde_json::Value::Object(settings.collect()).to_string()
}

#[track_caller]
fn refuses(line: &str, sentence: &str) {
    assert_eq!(plan(line).expect_err("this must be refused"), sentence);
}

#[track_caller]
fn parser_refuses(line: &str, part: &str) {
    let message = plan(line).expect_err("this must be refused");
    assert!(message.starts_with("error: ") && message.contains(part), "{message}");
}

#[test]
fn the_command_definition_is_sound() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn defaults_are_one_warehouse_per_core_under_occ_and_dst() {
    let plan = plan("bench tpcc").expect("fine");
    assert_eq!(
        scale(&plan),
        r#"{"customers":3000,"distributed":1.0,"districts":1,"items":100000,"remote_payments":15.0,"split_columns":true,"spread":false,"warehouses":2}"#
    );
    assert_eq!(plan.pairs, [Pair { protocol: Protocol::Occ, scheme: Scheme::Dst }]);
    assert_eq!((plan.shards, plan.concurrency, plan.runs, plan.seed), (2, 8, 1, 1));
    assert_eq!((plan.warmup, plan.duration), (Duration::from_secs(2), Duration::from_secs(10)));
    assert_eq!(plan.oracle, OraclePlan { batch: true, compress: true, prefetch: false });
    assert_eq!((plan.check_online_per_second, plan.json), (2, JsonOutput::None));
}

#[test]
fn processes_divide_the_cores_and_multiply_the_shards() {
    let two = plan("bench smallbank --processes 2").expect("fine");
    assert_eq!((two.processes, two.shards, two.shards_per_process()), (Some(2), 2, 1));
    let more = plan("bench tpcc --processes 3 --shards 2 --oversubscribe").expect("fine");
    assert_eq!((more.shards, more.shards_per_process()), (6, 2));
    let config = more.config(more.pairs[0]);
    assert_eq!(config.get("warehouses"), Some(&6.into()));
    assert_eq!((config.get("processes"), config.get("shards")), (Some(&3.into()), Some(&2.into())));
    refuses("bench tpcc --processes 0", "--processes 0 is too small: give 1 or more");
    refuses("bench tpcc --processes 65", "--processes 65 is too large: give 64 or less");
    refuses(
        "bench tpcc --processes 3",
        "--processes 3 with 1 shard each is more than the 2 cores of this machine: give fewer, or add --oversubscribe",
    );
    refuses("bench smallbank --processes 2 --shards 1 --rate 0", "--rate 0 is too small: give 1 or more");
}

#[test]
fn a_comparison_runs_each_pair_three_times_with_the_first_as_reference() {
    let plan = plan("bench tpcc --compare two_pl/dst,occ/rc --lock-policy no_wait").expect("fine");
    assert_eq!(plan.pairs.iter().map(Pair::to_string).collect::<Vec<_>>(), ["two_pl/dst", "occ/rc"]);
    assert_eq!((plan.runs, plan.lock_policy), (3, LockPolicy::NoWait));
}

#[test]
fn a_workload_after_a_bare_json_flag_is_not_taken_for_a_file() {
    assert_eq!(plan("bench --json smallbank").expect("fine").json, JsonOutput::Stdout);
    assert_eq!(plan("bench smallbank --json -").expect("fine").json, JsonOutput::Stdout);
}

#[test]
fn the_configuration_names_what_affects_the_pair() {
    let plan = plan("bench smallbank --compare occ/vts,two_pl/dst --staleness 10ms").expect("fine");
    let names = |pair| plan.config(pair).iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let vts = names(plan.pairs[0]);
    assert!(vts.contains(&"oracle_compress".to_owned()) && !vts.contains(&"lock_policy".to_owned()));
    assert_eq!(plan.config(plan.pairs[1]).get("staleness_seconds"), Some(&0.01.into()));
    assert_eq!(plan.config(plan.pairs[1]).get("accounts"), Some(&100_000.into()));
}

#[test]
fn a_missing_workload_is_asked_for() {
    refuses(
        "bench",
        "no workload is named: say `plimsoll bench tpcc`, for example, or tpce, or smallbank, or micro",
    );
}

#[test]
fn an_unknown_workload_scheme_or_protocol_lists_the_known() {
    parser_refuses("bench ycsb", "[possible values: tpcc, tpce, smallbank, micro]");
    parser_refuses("bench tpcc --scheme hlc", "[possible values: dst, gts, vts, rc, none]");
    parser_refuses("bench tpcc --protocol mvto", "[possible values: occ, two_pl, client_2pc, rococo]");
}

#[test]
fn an_unknown_name_in_a_comparison_lists_the_known() {
    refuses(
        "bench tpcc --compare occ/dst,occ/hlc",
        "there is no scheme `hlc`: the schemes are dst, gts, vts, rc and none",
    );
    refuses(
        "bench tpcc --compare mvto/dst,occ/rc",
        "there is no protocol `mvto`: the protocols are occ, two_pl, client_2pc and rococo",
    );
    refuses("bench tpcc --compare occ,two_pl", "`occ` is not a pair: write protocol/scheme, such as occ/dst");
}

#[test]
fn a_comparison_needs_two_different_pairs() {
    refuses("bench tpcc --compare occ/dst", "--compare needs at least two pairs, such as occ/dst,occ/rc");
    refuses("bench tpcc --compare occ/dst,occ/dst", "--compare names occ/dst twice: leave one out");
    parser_refuses("bench tpcc --compare occ/dst,occ/rc --scheme dst", "cannot be used with");
}

#[test]
fn an_illegal_pair_lists_the_legal_ones() {
    let refusal = Pair { protocol: Protocol::TwoPl, scheme: Scheme::Vts }.legal(&LEGAL_PAIRS[..2]);
    assert_eq!(
        refusal.expect_err("refused").to_string(),
        "two_pl/vts is not a legal pair: choose one of occ/dst, occ/gts"
    );
    refuses(
        "bench tpcc --protocol client_2pc --scheme gts",
        "client_2pc/gts is not a legal pair: choose one of occ/dst, occ/gts, occ/vts, occ/rc, occ/none, two_pl/dst, \
         two_pl/gts, two_pl/vts, two_pl/rc, two_pl/none, client_2pc/dst, client_2pc/none, \
         rococo/dst, rococo/none",
    );
}

#[test]
fn what_cannot_be_kept_on_disk_is_refused() {
    let here = std::env::temp_dir();
    let here = here.to_str().expect("a plain name");
    let kept = plan(&format!("bench smallbank --data-dir {here}")).expect("fine");
    assert!(kept.config(kept.pairs[0]).iter().any(|(name, value)| name == "durability" && value == "sync"));
    for scheme in ["gts", "vts"] {
        plan(&format!("bench smallbank --scheme {scheme} --data-dir {here}")).expect("an oracle has a log");
    }
    plan(&format!("bench tpcc --protocol rococo --data-dir {here}")).expect("rococo has a log");
    let cut = plan(&format!("bench smallbank --data-dir {here} --durability async")).expect("fine");
    assert_eq!((cut.durability().to_string(), cut.sides().len(), cut.runs), ("async".to_owned(), 1, 1));
    assert_eq!(plan("bench smallbank --durability none").expect("fine").data_dir, None);
    refuses(
        &format!("bench smallbank --data-dir {here} --durability none"),
        "--durability none keeps nothing: leave --data-dir out",
    );
    refuses(
        "bench smallbank --durability sync",
        "--durability sync needs a disk: say with --data-dir where data is kept",
    );
    refuses(
        &format!("bench smallbank --data-dir {here} --durability fsync"),
        "--durability: there is no durability \"fsync\"; there are none, async, sync",
    );
    refuses(
        &format!("bench smallbank --scheme vts --data-dir {here} --durability async"),
        "--durability: under occ/vts a database cannot go back to one timestamp; choose occ or two_pl with dst or \
         gts, or client_2pc with dst",
    );
    refuses(
        "bench smallbank --data-dir /nowhere/at/all",
        "--data-dir /nowhere/at/all: there is no such directory; make it, or give another",
    );
    parser_refuses(&format!("bench smallbank --processes 2 --data-dir {here}"), "cannot be used with");
}

#[test]
fn durabilities_are_compared_on_a_disk_and_each_is_named_once() {
    let here = std::env::temp_dir();
    let kept = format!("bench smallbank --data-dir {}", here.to_str().expect("a plain name"));
    let both =
        plan(&format!("{kept} --compare-durability none,sync --compare occ/dst,occ/none")).expect("fine");
    let sides: Vec<String> = both.sides().iter().map(Side::to_string).collect();
    assert_eq!(sides, ["occ/dst none", "occ/dst sync", "occ/none none", "occ/none sync"]);
    let kept_by: Vec<bool> = both.sides().iter().map(|&side| both.of(side).data_dir.is_some()).collect();
    assert_eq!((kept_by, both.runs), (vec![false, true, false, true], 3));
    let one = plan(&format!("{kept} --replay-raw")).expect("fine");
    assert!(one.replay_raw && one.of(one.sides()[0]).data_dir.is_some() && one.sides().len() == 1);
    let nothing = "needs a disk: say with --data-dir where data is kept";
    refuses("bench smallbank --replay-raw", &format!("--replay-raw {nothing}"));
    refuses("bench smallbank --compare-durability none,sync", &format!("--compare-durability {nothing}"));
    refuses(
        &format!("{kept} --compare-durability none,fsync"),
        "--compare-durability: there is no durability \"fsync\"; there are none, async, sync",
    );
    refuses(
        &format!("{kept} --compare-durability sync"),
        "--compare-durability needs at least two durabilities, such as none,sync",
    );
    refuses(
        &format!("{kept} --compare-durability sync,sync"),
        "--compare-durability names sync twice: leave one out",
    );
    refuses(
        &format!("{kept} --scheme none --compare-durability none,async"),
        "--compare-durability: under occ/none a database cannot go back to one timestamp; choose occ or two_pl \
         with dst or gts, or client_2pc with dst",
    );
    refuses(
        &format!(
            "{} --protocol rococo --compare-durability none,async",
            kept.replacen("smallbank", "tpcc", 1)
        ),
        "--compare-durability: under rococo/dst a database cannot go back to one timestamp; choose occ or two_pl \
         with dst or gts, or client_2pc with dst",
    );
    refuses(
        &format!("{kept} --scheme vts --compare-durability none,async"),
        "--compare-durability: under occ/vts a database cannot go back to one timestamp; choose occ or two_pl \
         with dst or gts, or client_2pc with dst",
    );
}

#[test]
fn impossible_sizes_are_refused() {
    refuses("bench tpcc --warehouses 0", "--warehouses 0 is too small: give 1 or more");
    refuses("bench tpcc --warehouses-per-shard 0", "--warehouses-per-shard 0 is too small: give 1 or more");
    refuses("bench tpcc --shards 0", "--shards 0 is too small: give 1 or more");
    refuses("bench tpcc --concurrency 0", "--concurrency 0 is too small: give 1 or more");
    refuses("bench tpcc --concurrency 65536", "--concurrency 65536 is too large: give 65,535 or less");
    refuses(
        "bench tpcc --shards 2 --concurrency 40000",
        "80,000 transactions are too many in flight: lower --concurrency or --coordinators until all shards together \
         have at most 65,535",
    );
    refuses("bench tpcc --coordinators 0", "--coordinators 0 is too small: give 1 or more");
    refuses("bench tpcc --shards 2 --coordinators 3", "--coordinators 3 is too large: give 2 or less");
    refuses("bench tpcc --rate 0", "--rate 0 is too small: give 1 or more");
    refuses("bench tpcc --items 99", "--items 99 is too small: give 100 or more");
    refuses("bench tpcc --customers 0", "--customers 0 is too small: give 30 or more");
    refuses("bench tpcc --runs 0", "--runs 0 is too small: give 1 or more");
    refuses("bench smallbank --accounts 1", "--accounts 1 is too small: give 100 or more");
    refuses(
        "bench smallbank --shards 5000 --oversubscribe",
        "--shards 5000 is too large: give 1,024 or less",
    );
    parser_refuses("bench tpcc --warehouses -1", "`-1` is not a whole number of 0 or more");
    parser_refuses("bench tpcc --warehouses 99999999999999999999", "is too large");
    parser_refuses("bench tpcc --warehouses 2 --warehouses-per-shard 2", "cannot be used with");
}

#[test]
fn more_shards_than_cores_must_be_meant() {
    refuses(
        "bench tpcc --shards 3",
        "--shards 3 is more than the 2 cores of this machine: give at most 2, or add --oversubscribe",
    );
    assert_eq!(plan("bench tpcc --shards 3 --oversubscribe").expect("fine").shards, 3);
}

#[test]
fn every_shard_needs_a_warehouse() {
    refuses(
        "bench tpcc --warehouses 1",
        "1 of the 2 shards would have a warehouse and the others no work: give at least --warehouses 2, or \
         --shards 1, or --spread",
    );
    let plan = plan("bench tpcc --warehouses 1 --spread").expect("spread, one is enough");
    assert_eq!(plan.config(plan.pairs[0]).get("spread"), Some(&true.into()));
    refuses("bench micro --spread", "--spread is a flag of tpcc, not of micro: leave it out");
}

#[test]
fn more_data_than_memory_is_refused() {
    refuses(
        "bench tpcc --warehouses 1000",
        "the data would take about 124 GB but only 16.0 GB of memory are free: choose a smaller scale",
    );
    let huge = "the data would take about";
    for line in [
        "bench tpcc --warehouses 1000000000",
        "bench smallbank --accounts 1000000000",
        "bench micro --tuples 1000000000",
    ] {
        assert!(plan(line).expect_err("refused").starts_with(huge));
    }
    assert!(refuse_more_than_memory(u64::MAX, 0).is_ok());
}

#[test]
fn percentages_are_percentages() {
    let sentence = |given| format!("--distributed {given} is not a percentage: give a number from 0 to 100");
    for given in ["101", "-1", "NaN"] {
        refuses(&format!("bench smallbank --distributed {given}"), &sentence(given));
        refuses(&format!("bench tpcc --distributed {given}"), &sentence(given));
    }
    refuses(
        "bench tpcc --remote-payments 150",
        "--remote-payments 150 is not a percentage: give a number from 0 to 100",
    );
    assert!(plan("bench tpcc --distributed 0.5 --remote-payments 100").is_ok());
}

#[test]
fn distributed_work_needs_somewhere_to_go() {
    refuses(
        "bench smallbank --shards 1 --distributed 10",
        "--distributed needs a second shard: give --shards 2 or more, or leave it out",
    );
    refuses(
        "bench tpcc --shards 1 --remote-payments 10",
        "--remote-payments needs a second warehouse: give --warehouses 2 or more, or leave it out",
    );
    let alone = plan("bench smallbank --shards 1").expect("fine");
    assert_eq!(scale(&alone), r#"{"accounts":100000,"distributed":0.0,"global":false}"#);
    assert!(plan("bench smallbank --shards 1 --distributed 0").is_ok());
    assert!(plan("bench tpcc --shards 1 --warehouses 2 --distributed 10").is_ok());
}

#[test]
fn accounts_of_all_shards_are_drawn_instead_of_a_share_of_payments_between_them() {
    let four = plan("bench smallbank --global --processes 2 --shards 2 --oversubscribe").expect("fine");
    assert_eq!(scale(&four), r#"{"accounts":100000,"distributed":75.0,"global":true}"#);
    let config = four.config(four.pairs[0]);
    assert_eq!((config.get("global"), config.get("distributed")), (Some(&true.into()), Some(&75.0.into())));
    let local = plan("bench smallbank").expect("fine");
    assert_eq!(local.config(local.pairs[0]).get("global"), Some(&false.into()));
    refuses(
        "bench smallbank --global --distributed 0",
        "--global draws all accounts from all shards: leave --distributed out",
    );
    refuses(
        "bench smallbank --global --shards 1",
        "--global needs a second shard: give --shards 2 or more, or leave it out",
    );
    refuses("bench tpcc --global", "--global is a flag of smallbank, not of tpcc: leave it out");
    refuses("bench micro --global", "--global is a flag of smallbank, not of micro: leave it out");
}

/// The path of a file, in a folder of its own, that describes a cluster of two nodes with these
/// tables.
fn cluster_file(folder: &tempfile::TempDir, tables: &str) -> String {
    let file = folder.path().join("bank.toml");
    let node = |id| {
        format!(
            "[[node]]\nid = {id}\naddress = \"127.0.0.1:70{id}1\"\nhttp = \"127.0.0.1:70{id}2\"\nshards = 2\n"
        )
    };
    let text = format!("cluster = \"bank\"\nscheme = \"none\"\n{}{}{tables}", node(1), node(2));
    std::fs::write(&file, text).expect("the directory is ours");
    file.display().to_string()
}

#[test]
fn a_client_of_a_cluster_has_its_pair_and_its_shards_and_says_the_rest() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = cluster_file(&folder, "");
    let on_cluster = |more: &str| plan(&format!("bench smallbank --cluster {file} {more}"));
    let bank = |more: &str| scale(&on_cluster(more).expect("fine"));
    assert_eq!(bank(""), r#"{"accounts":100000,"distributed":1.0,"global":false}"#);
    assert_eq!(
        bank("--accounts 500 --distributed 20"),
        r#"{"accounts":500,"distributed":20.0,"global":false}"#
    );
    assert_eq!(bank("--global --load"), r#"{"accounts":100000,"distributed":75.0,"global":true}"#);
    let plan = on_cluster("--load --duration 1s").expect("the flags of the run are no obstacle");
    assert_eq!((plan.shards, plan.coordinators), (4, 1));
    assert_eq!(plan.pairs, [Pair { protocol: Protocol::Occ, scheme: Scheme::None }]);
    for flag in ["shards 2", "scheme dst", "compare occ/dst,occ/rc", "oversubscribe"] {
        let name = flag.split(' ').next().expect("a name");
        let said = on_cluster(&format!("--{flag}")).expect_err("the file says it");
        assert_eq!(said, format!("--{name} is said by the cluster's file: leave it out"));
    }
}

#[test]
fn a_load_without_a_value_fills_a_cluster_and_needs_one() {
    let sentence = "--load without a value fills a cluster that runs: name it with --cluster; or give --load 1,2,4,8 \
                    to measure at each of these loads";
    refuses("bench tpcc --load", sentence);
    refuses("bench --load tpcc", sentence);
    parser_refuses("bench tpcc --load --tables", "cannot be used with");
    let folder = tempfile::tempdir().expect("a directory");
    let file = cluster_file(&folder, "");
    for (flags, fill, loads) in [("--load", true, ""), ("--load 1,2", false, "1,2"), ("", false, "")] {
        let plan = plan(&format!("bench smallbank --cluster {file} {flags}")).expect("fine");
        assert_eq!((plan.fill, axis::listed(&plan.loads).as_str()), (fill, loads), "{flags}");
    }
    let fill = plan(&format!("bench --cluster {file} --load smallbank")).expect("it is no load");
    assert!(fill.fill && fill.loads.is_empty());
    let json = plan(&format!("bench --cluster {file} --json smallbank")).expect("it is no file");
    assert_eq!(json.json, JsonOutput::Stdout);
}

#[test]
fn loads_are_transactions_in_flight_or_shares_of_the_peak() {
    let listed = |load: &str| {
        let plan = plan(&format!("bench smallbank --load {load}")).expect("fine");
        assert_eq!(
            plan.config(plan.pairs[0]).get("load"),
            Some(&axis::listed(&plan.loads).into()),
            "the record has all loads"
        );
        axis::listed(&plan.loads)
    };
    assert_eq!(listed("1,2,4,8,16,32"), "1,2,4,8,16,32");
    assert_eq!(listed("8"), "8");
    assert_eq!(listed("10%,50%,90%"), "10%,50%,90%");
    assert_eq!(listed("10%..110%"), "10%,20%,30%,40%,50%,60%,70%,80%,90%,100%,110%");
    assert_eq!(listed("5%..30%"), "5%,15%,25%,30%", "both ends are included");
    let compared = plan("bench smallbank --load 1,32767 --compare occ/dst,occ/rc").expect("fine");
    assert_eq!((compared.loads.len(), compared.runs), (2, 3));
}

#[test]
fn loads_that_are_no_axis_are_refused() {
    for (load, sentence) in [
        (
            "1,,2",
            "--load 1,,2 has `` for a load: give whole numbers of transactions in flight, such as 1,2,4,8, or of \
                  percent, such as 10%..110%",
        ),
        (
            "-1",
            "--load -1 has `-1` for a load: give whole numbers of transactions in flight, such as 1,2,4,8, or of \
                percent, such as 10%..110%",
        ),
        (
            "50%..",
            "--load 50%.. has `` for a load: give whole numbers of transactions in flight, such as 1,2,4,8, or \
                   of percent, such as 10%..110%",
        ),
        ("4,2", "--load 4,2 descends: give smaller loads first"),
        ("50%..10%", "--load 50%..10% does not ascend: give the smaller share first"),
        ("1,2,2", "--load names 2 twice: leave one out"),
        ("50%,50%", "--load names 50% twice: leave one out"),
        ("0,1", "--load 0 is too small: give 1 or more"),
        ("0%..50%", "--load 0% asks for nothing: give 1% or more"),
        (
            "10%,150%",
            "--load 150% is too large, since beyond the peak latency grows for as long as the run lasts: \
                      give 110% or less",
        ),
        (
            "1,50%",
            "--load 1,50% mixes transactions in flight with shares of the peak: give numbers, such as 1,2,4,8, or \
                   percentages, such as 10%,50%,90%",
        ),
        (
            "1..8",
            "--load 1..8 is a range, which only shares of the peak have: give 10%..110%, or a list such as 1,2,4,8",
        ),
        ("65536", "--load 65536 is too large: give 65,535 or less"),
        (
            "1,40000",
            "80,000 transactions are too many in flight: lower --load or --coordinators until all shards \
                     together have at most 65,535",
        ),
    ] {
        refuses(&format!("bench smallbank --load {load}"), sentence);
    }
    let many: Vec<String> = (1..=33).map(|number: u32| number.to_string()).collect();
    refuses(&format!("bench smallbank --load {}", many.join(",")), "--load names 33 loads: give 32 or fewer");
    refuses(
        "bench smallbank --load=",
        "--load  has `` for a load: give whole numbers of transactions in flight, such as 1,2,4,8, or of percent, such \
         as 10%..110%",
    );
    refuses(
        "bench smallbank --load 1,2 --concurrency 8",
        "--load and --concurrency both say how much is in flight: leave one of them out",
    );
    refuses(
        "bench smallbank --load 10%..50% --rate 100",
        "--load and --rate both say how much is asked for: leave one of them out",
    );
}

#[test]
fn tables_that_are_printed_are_the_tables_of_the_workload() {
    let folder = tempfile::tempdir().expect("a directory");
    for (line, place) in [
        ("tpcc", ""),
        ("tpcc --spread", ""),
        ("tpcc --split-columns off --items 100", ""),
        ("tpcc --spread --split-columns off --warehouses 3", "--cluster"),
        ("smallbank --accounts 1234", ""),
        ("smallbank", "--cluster"),
        ("micro --tuples 77", "--shards 7"),
    ] {
        let file = cluster_file(&folder, "");
        let place = if place == "--cluster" { format!("--cluster {file}") } else { place.to_owned() };
        let words = format!("plimsoll bench {line} --tables {place}");
        let cli = Cli::try_parse_from(words.split_whitespace()).expect("such flags exist");
        let Command::Bench(args) = cli.command;
        let plan = args.validate_tables(2).expect("it is possible");
        let workload = workload::make(&plan).expect("it is possible");
        let file = cluster_file(&folder, &describe_tables(&workload.tables()));
        let cluster = Cluster::read(file.as_ref()).expect("it describes a cluster");
        assert_eq!(cluster.tables, workload.tables(), "{words}");
        assert_eq!(workload::refuse_other_tables(&*workload, &cluster), Ok(()), "{words}");
    }
}

#[test]
fn a_cluster_with_other_tables_is_refused_and_the_first_is_named() {
    let made = |line: &str| workload::make(&plan(line).expect("fine")).expect("it is possible");
    let folder = tempfile::tempdir().expect("a directory");
    let refused = |line: &str, tables: &[TableSpec]| {
        let file = cluster_file(&folder, &describe_tables(tables));
        let cluster = Cluster::read(file.as_ref()).expect("it describes a cluster");
        workload::refuse_other_tables(&*made(line), &cluster).expect_err("it has others").to_string()
    };
    let bank = made("bench smallbank").tables();
    let none = refused("bench smallbank", &[]);
    assert!(
        none.starts_with("cluster \"bank\" has no table \"savings\", which smallbank needs: put what"),
        "{none}"
    );
    assert!(none.contains("--tables"), "{none}");
    let other = refused("bench smallbank --accounts 500", &bank);
    assert!(
        other.starts_with("table \"savings\" of cluster \"bank\" is not as smallbank needs it at this scale"),
        "{other}"
    );
    let order = refused("bench smallbank", &[bank[0].clone(), made("bench micro").tables()[0].clone()]);
    assert!(
        order.starts_with("cluster \"bank\" has a table \"tuples\" where smallbank needs \"checking\""),
        "{order}"
    );
    let more = [bank, made("bench micro").tables()].concat();
    let more = refused("bench smallbank", &more);
    assert!(more.starts_with("cluster \"bank\" has a table \"tuples\", which smallbank has not"), "{more}");
}

#[test]
fn a_stock_level_reads_one_to_twenty_districts() {
    for k in [0, 21] {
        refuses(
            &format!("bench tpcc --districts {k}"),
            &format!("--districts {k} is outside 1..20: a stock-level reads 1 to 20 districts"),
        );
    }
}

#[test]
fn flags_of_the_other_workload_are_refused() {
    refuses("bench tpcc --accounts 1000", "--accounts is a flag of smallbank, not of tpcc: leave it out");
    for flag in ["warehouses 2", "warehouses-per-shard 1", "items 100", "customers 30", "districts 2"] {
        let name = flag.split(' ').next().expect("a name");
        refuses(
            &format!("bench smallbank --{flag}"),
            &format!("--{name} is a flag of tpcc, not of smallbank: leave it out"),
        );
    }
    refuses("bench micro --accounts 1000", "--accounts is a flag of smallbank, not of micro: leave it out");
    for flag in ["tuples 9", "tuples-per-transaction 9", "read-only 9", "read-share 9", "spin 9us"] {
        let name = flag.split(' ').next().expect("a name");
        refuses(
            &format!("bench tpcc --{flag}"),
            &format!("--{name} is a flag of micro, not of tpcc: leave it out"),
        );
    }
}

#[test]
fn a_microbenchmark_is_ten_tuples_a_tenth_of_them_elsewhere() {
    let micro = |line: &str| scale(&plan(line).expect("fine"));
    assert_eq!(
        micro("bench micro"),
        r#"{"distributed":10.0,"participants":0,"read_only":50.0,"read_share":50.0,"spin_seconds":0.0,"tuples":100000,"tuples_per_transaction":10,"zipf":0.0}"#
    );
    assert!(micro("bench micro --shards 1").starts_with(r#"{"distributed":0.0,"#));
    let spins = micro("bench micro --tuples-per-transaction 0 --read-only 0 --spin 50us");
    assert!(
        spins.contains(r#""spin_seconds":0.00005,"#) && spins.contains(r#""tuples_per_transaction":0,"#),
        "{spins}"
    );
    let plan = plan("bench micro --read-share 20 --spin 1.5ms").expect("fine");
    let config = plan.config(plan.pairs[0]);
    assert_eq!(config.get("read_share"), Some(&20.0.into()));
    assert_eq!(config.get("spin_seconds"), Some(&0.0015.into()));
    assert_eq!(config.get("tuples_per_transaction"), Some(&10.into()));
}

#[test]
fn a_microbenchmark_that_cannot_be_is_refused() {
    refuses("bench micro --tuples 0", "--tuples 0 is too small: give 1 or more");
    refuses(
        "bench micro --tuples 9",
        "a transaction of 10 different tuples needs as many on a shard: give --tuples 10 or more, or \
         --tuples-per-transaction 9 or less",
    );
    refuses(
        "bench micro --tuples-per-transaction 1001",
        "--tuples-per-transaction 1001 is too large: give 1,000 or less",
    );
    for flag in ["read-only", "read-share", "distributed"] {
        refuses(
            &format!("bench micro --{flag} 101"),
            &format!("--{flag} 101 is not a percentage: give a number from 0 to 100"),
        );
    }
    refuses("bench micro --spin 2s", "--spin 2s is too long: give 1s or less");
    refuses(
        "bench micro --shards 1 --distributed 10",
        "--distributed needs a second shard: give --shards 2 or more, or leave it out",
    );
    for (flag, others, needs) in [
        ("spin 50us", "--read-only 100", "--read-only below 100"),
        ("read-share 20", "--read-only 100", "--read-only below 100"),
        ("read-share 20", "--tuples-per-transaction 0", "--tuples-per-transaction above 0"),
        ("distributed 20", "--tuples-per-transaction 0", "--tuples-per-transaction above 0"),
    ] {
        let name = flag.split(' ').next().expect("a name");
        refuses(
            &format!("bench micro {others} --{flag}"),
            &format!("--{name} has no effect here: give {needs} or leave it out"),
        );
    }
}

#[test]
fn flags_without_effect_are_refused() {
    for (flag, needs) in [
        ("lock-policy no_wait", "--protocol two_pl"),
        ("oracle-batch off", "--scheme gts or --scheme vts"),
        ("oracle-prefetch on", "--scheme gts or --scheme vts"),
        ("oracle-compress off", "--scheme vts"),
        ("rc-single-version", "--scheme rc"),
    ] {
        let name = flag.split(' ').next().expect("a name");
        refuses(
            &format!("bench tpcc --{flag}"),
            &format!("--{name} has no effect here: add {needs} or leave it out"),
        );
        assert!(plan(&format!("bench tpcc --compare occ/vts,occ/rc,two_pl/none --{flag}")).is_ok());
    }
    refuses(
        "bench tpcc --scheme none --staleness 1s",
        "--staleness has no effect here: add --scheme dst or leave it out",
    );
}

#[test]
fn a_run_takes_time() {
    refuses("bench tpcc --duration 0s", "--duration 0s measures nothing: give a time such as 10s");
    assert!(plan("bench tpcc --warmup 0").is_ok());
}

#[test]
fn an_unwritable_output_is_found_before_the_run() {
    refuses(
        "bench tpcc --report /no/such/report.html",
        "cannot write /no/such/report.html: the directory /no/such does not exist",
    );
    refuses("bench tpcc --json /", "cannot write /: it is not the name of a file");
    refuses(
        "bench tpcc --json same --report same",
        "--json and --report both name same: give them different files",
    );
}

#[test]
fn a_duration_without_a_unit_is_refused() {
    parser_refuses("bench tpcc --duration 10", "`10` is not a duration");
}

#[test]
fn participants_and_skew_of_a_microbenchmark_are_possible_ones() {
    let three = "bench micro --shards 3 --oversubscribe";
    refuses(&format!("{three} --participants 4"), "--participants 4 is too large: give 3 or less");
    refuses(
        &format!("{three} --participants 3 --tuples-per-transaction 2"),
        "2 tuples are on 2 shards at most: give --tuples-per-transaction 3 or more",
    );
    refuses(
        &format!("{three} --participants 2 --distributed 5"),
        "--participants says on how many shards the tuples are: leave --distributed out",
    );
    refuses(&format!("{three} --zipf 1"), "--zipf 1 is outside of 0 to 0.999: give a number such as 0.99");
    refuses("bench tpcc --zipf 0.5", "--zipf is a flag of micro, not of tpcc: leave it out");
    let plan = plan(&format!("{three} --participants 3 --zipf 0.99")).expect("fine");
    let config = plan.config(plan.pairs[0]);
    assert_eq!((config.get("participants"), config.get("zipf")), (Some(&3.into()), Some(&0.99.into())));
}

#[test]
fn a_brokerage_that_cannot_be_is_refused() {
    for (flags, sentence) in [
        ("--customers 1500", "--customers 1500 is no multiple of 1,000: give 2000"),
        ("--customers 0", "--customers 0 is too small: give 1,000 or more"),
        (
            "--trade-days 3",
            "--trade-days 3 is too small: transactions that read twenty trades would find fewer; give 5 or more, or --paper",
        ),
        ("--paper --trade-days 0", "--trade-days 0 is too small: give 1 or more"),
        ("--trade-days 301", "--trade-days 301 is too large: give 300 or less"),
        ("--home 300", "--home 300 is no size of a home: give 1000, 500, 200 or 100"),
        (
            "--shards 8 --oversubscribe",
            "4 of the 8 shards would have customers and the others no work: give --home 500, or --shards 4, or more --customers",
        ),
        (
            "--shards 50 --oversubscribe",
            "4000 customers are too few for 50 shards: give --customers 5000 and --home 100",
        ),
        ("--local 120", "--local 120 is not a percentage: give a number from 0 to 100"),
        ("--market-time 0", "--market-time 0 is neither \"orders\" nor a number above 0, such as 100"),
        ("--market-time soon", "--market-time soon is neither \"orders\" nor a number above 0, such as 100"),
        ("--daily-market 10", "--daily-market 10 is too small: give 30 or more"),
        ("--distributed 5", "tpce has no --distributed: give --local PERCENT, the share of local customers"),
        ("--warehouses 3", "--warehouses is a flag of tpcc, not of tpce: leave it out"),
    ] {
        refuses(&format!("bench tpce {flags}"), sentence);
    }
    refuses("bench tpcc --home 100", "--home is a flag of tpce, not of tpcc: leave it out");
    let plan = plan("bench tpce --paper --customers 2000 --split-columns off").expect("fine");
    let config = plan.config(plan.pairs[0]);
    assert_eq!(config.get("trade_days"), Some(&1.into()));
    assert_eq!(
        (config.get("customers"), config.get("split_columns")),
        (Some(&2000.into()), Some(&false.into()))
    );
}
