//! One test for each reason to refuse, and one for each way to say yes.

use clap::Parser;

use super::*;

/// The program with this command only.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: ScaleArgs,
}

fn scaling(line: &str) -> Result<ScalePlan, String> {
    let words = std::iter::once("scale").chain(line.split_whitespace());
    let Line { args } = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    args.validate().map_err(|refusal| refusal.to_string())
}

#[test]
fn a_scaling_study_doubles_the_nodes() {
    let at = |line: &str| scaling(line).expect("fine").series[0].at.clone();
    assert_eq!(at(""), [1, 2, 4, 8, 16]);
    assert_eq!(at("--nodes 1..1024").len(), 11);
    assert_eq!(at("--nodes 3..20"), [3, 6, 12, 20]);
    assert_eq!(at("--nodes 4..4"), [4]);
    assert_eq!(at("--nodes 1,3,31"), [1, 3, 31]);
    let plan = scaling("--schemes gts,dst --workload smallbank --machine val --nodes 2").expect("fine");
    assert_eq!(plan.series[0].schemes, ["gts", "dst"]);
    assert_eq!(scaling("--protocol client_2pc").expect("fine").series[0].schemes, ["dst", "none"]);
    assert_eq!(plan.series[0].configurations[0][1].cluster.shards_per_node, 24);
    assert_eq!(scaling("--paper").expect("fine").series.len(), 12);
    assert_eq!(scaling("--paper --figures 1(a)").expect("fine").series[0].schemes.len(), 5);
    assert_eq!(scaling("--paper --figures 6(c)").expect("fine").series[0].at, [2, 4, 8, 12, 16]);
    let narrow = scaling("--nodes 1..1024 --machine val --shards-per-node 2").expect("fine");
    assert!(narrow.series[0].title.contains("on nodes of 2 shards"), "{}", narrow.series[0].title);
}

#[test]
fn loads_are_an_axis_of_one_cluster() {
    let plan =
        scaling("--workload tpce --machine val --shards-per-node 2 --nodes 4 --load 1,8").expect("fine");
    let series = &plan.series[0];
    assert_eq!((series.axis, series.at.as_slice()), ("in flight", &[1, 8][..]));
    let clusters = series.configurations.iter().map(|row| &row[0].cluster);
    let of: Vec<_> = clusters.map(|cluster| (cluster.nodes, cluster.concurrency)).collect();
    assert_eq!(of, [(4, 1), (4, 8)]);
}

#[test]
fn a_scaling_study_that_cannot_be_is_refused() {
    let refused = |line: &str, part: &str| {
        let message = scaling(line).expect_err("this must be refused");
        assert!(message.contains(part), "{message}");
    };
    refused("--nodes 8..4", "8..4 is empty");
    refused("--nodes 0..4", "at least one node");
    refused("--nodes 4,2", "not ascending");
    refused("--nodes many", "neither a range");
    refused("--nodes 1..1024 --machine val", "give at most 85 nodes, or --shards-per-node 2");
    refused("--nodes 18446744073709551615", "at most 2048 shards: give at most 2048 nodes");
    refused("--machine nowhere.json", "there is no such file, nor is it one of reference, aws, val, vlr");
    refused("--districts 0", "--districts 0 is too small");
    refused("--districts 4 --workload micro", "--districts is a flag of tpcc");
    refused("--spread --workload micro", "--spread is a flag of tpcc");
    refused("--load 8,4", "not ascending");
    refused("--load 1,2 --nodes 1..4", "one number of nodes");
    refused("--load 1,2 --concurrency 4", "cannot be used with");
    refused("--workload tpce", "knows no prices of tpce: measure them with `plimsoll calibrate`");
    refused("--workload tpce --machine val --nodes 31", "give at most 21 nodes, or --shards-per-node 16");
    refused("--customers 100", "--customers is a flag of tpce");
    refused("--workload tpce --machine val --customers 90", "no even part of 1,000: give 100");
    refused("--distributed 4", "--distributed is a flag of smallbank");
    refused("--workload smallbank --distributed 101", "is not a percentage");
    refused("--paper --nodes 4", "cannot be used with");
    refused(
        "--paper --figures 7",
        "--figures 7 is not one that can be predicted: there are 1(b), 6(b), 6(c)",
    );
    refused("--protocol client_2pc --schemes dst,gts", "client_2pc/gts is not a legal pair: choose one of");
    refused("--report /nowhere/scale.html", "the directory /nowhere does not exist");
    refused("--schemes dst,xts", "invalid value 'xts'");
}
