//! What several unit tests need.

use plimsoll_types::ShardId;

use crate::timestamp::SchemeConfig;

pub fn scheme_config(shard: u16, data_shards: usize) -> SchemeConfig {
    SchemeConfig::in_one_process(ShardId(shard), data_shards)
}
