//! What several unit tests need.

use plimsoll_types::ShardId;

use crate::timestamp::{OracleOptions, SchemeConfig};

pub fn scheme_config(shard: u16, data_shards: usize) -> SchemeConfig {
    SchemeConfig {
        shard: ShardId(shard),
        data_shards,
        max_staleness_ns: 0,
        oracle: OracleOptions::default(),
        single_version: false,
        process: 0,
        processes: 1,
        clients: data_shards..data_shards,
        process_counter: Default::default(),
        first_attempt: 1,
        patience_ns: crate::votes::PATIENCE_NS,
    }
}
