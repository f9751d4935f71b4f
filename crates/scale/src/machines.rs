//! Cost models that come with the program, and those in files.

use std::path::Path;

use plimsoll_args::Refusal;

use crate::predict::model::CostModel;

/// Models that come with the program: name and text.
const BUILT_IN: [(&str, &str); 4] = [
    ("reference", include_str!("../machines/reference.json")),
    ("aws", include_str!("../machines/aws.json")),
    ("val", include_str!("../machines/val.json")),
    ("vlr", include_str!("../machines/vlr.json")),
];
/// No model is longer, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// A model by its name, or by the name of a file; `flag` is where it was named.
pub fn named(flag: &str, name: &str) -> Result<CostModel, Refusal> {
    let refusal = |why: String| Refusal::from(format!("--{flag} {name}: {why}"));
    let text = match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        Some((_, text)) => (*text).to_owned(),
        None => read(Path::new(name)).map_err(refusal)?,
    };
    parse(&text).map_err(refusal)
}

fn read(path: &Path) -> Result<String, String> {
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let about = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no such file, nor is it one of {}", names.join(", "))
        }
        _ => error.to_string(),
    };
    let length = std::fs::metadata(path).map_err(about)?.len();
    if length > LENGTH_MAX {
        return Err(format!("it has {length} bytes, which is no cost model"));
    }
    std::fs::read_to_string(path).map_err(about)
}

fn parse(text: &str) -> Result<CostModel, String> {
    // The version first: another version may have other fields.
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let version = serde_json::from_str::<Versioned>(text)
        .map_err(|error| format!("it is not a cost model, which has a `version` ({error})"))?
        .version;
    if version != crate::predict::model::VERSION {
        return Err(format!(
            "it is of version {version}, and this program reads version {}: measure again with `plimsoll calibrate`",
            crate::predict::model::VERSION
        ));
    }
    serde_json::from_str::<CostModel>(text).map_err(|error| error.to_string())?.check()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_workloads::AnyWorkload;
    use plimsoll_workloads::tpcc::{Parameters, Tpcc};

    use crate::predict::published::FIGURES;
    use crate::predict::{Cluster, Prediction, predict};

    use super::*;

    /// What a scheme comes to over twenty districts per Stock-Level in a figure of the DST paper,
    /// in nodes of so many shards. Tables are as small as the conflicts allow: to load them takes
    /// longer than to run.
    fn predicted(number: &str, shards_per_node: usize, scheme: &'static str, items: u32) -> Prediction {
        let figure = FIGURES.iter().find(|figure| figure.number == number).expect("a figure");
        let model = named("machine", figure.machine).expect("it comes with the program");
        let node = (shards_per_node, model.concurrency as usize);
        let of_figure = figure.configuration(20, scheme, node, 3000, 1).cluster;
        let cluster = Cluster { doublings: 0, ..of_figure };
        let parameters = Parameters {
            items,
            customers_per_district: 30,
            stock_level_districts: 20,
            ..Parameters::new(cluster.shards() as u32)
        };
        let workload: Arc<dyn AnyWorkload> = Arc::new(Tpcc::new(parameters).expect("possible parameters"));
        predict(&cluster, &model, model.access["tpcc"], &workload, &|| false)
    }

    #[test]
    fn all_models_that_come_with_the_program_can_be_read() {
        for (name, _) in BUILT_IN {
            named("machine", name).expect("it was tried");
        }
    }

    #[test]
    fn on_the_papers_clusters_dst_keeps_up_with_rc() {
        for number in ["11(b)", "12(b)"] {
            let [dst, rc] = ["dst", "rc"].map(|scheme| predicted(number, 2, scheme, 2000).throughput());
            assert!(dst / rc > 0.95, "{number}: {}", dst / rc);
        }
    }

    #[test]
    fn sixteen_machines_of_the_papers_saturate_the_oracle_of_gts() {
        let (gts, dst) = (predicted("12(b)", 24, "gts", 500), predicted("12(b)", 2, "dst", 2000));
        assert!(gts.oracle_busy > 0.95, "{}", gts.oracle_busy);
        // Twelve times the shards are twelve times as fast under dst.
        let ratio = gts.throughput() / (12.0 * dst.throughput());
        assert!(ratio < 0.6, "{ratio}");
    }

    #[test]
    fn what_is_no_model_is_refused_with_a_reason() {
        let refused = |text: &str| parse(text).expect_err("it is no model");
        assert!(refused("{}").contains("`version`"));
        assert!(refused("hello").contains("not a cost model"));
        assert!(refused(r#"{"version": 99}"#).contains("version 99"));
        let good: serde_json::Value = serde_json::from_str(BUILT_IN[0].1).expect("it was tried");
        let with = |field: &str, value: serde_json::Value| {
            let mut model = good.clone();
            model[field] = value;
            model.to_string()
        };
        assert!(parse(&good.to_string()).is_ok());
        assert!(refused(&with("pass_ns", (-1).into())).contains("pass_ns"));
        assert!(refused(&with("gigabits_per_s", 0.into())).contains("gigabits_per_s"));
        assert!(refused(&with("shards_per_node", 0.into())).contains("at least one shard"));
        assert!(refused(&with("speed", 1.into())).contains("speed"));
        assert!(
            named("machine", "no such thing")
                .expect_err("it is not there")
                .to_string()
                .contains("no such file")
        );
    }
}
