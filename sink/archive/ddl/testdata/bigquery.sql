CREATE EXTERNAL TABLE IF NOT EXISTS `DATASET.My_Table-1` (
  `id` STRING,
  `deleted_at` TIMESTAMP,
  `source` STRING,
  `stream` STRING,
  `shard` STRING,
  `sequence` STRING,
  `version` INT64,
  `keys` STRING,
  `item` STRING,
  `expires` INT64,
  `amount` BIGNUMERIC(38, 10),
  `at` TIMESTAMP,
  `doc` STRING,
  `n` INT64,
  `price` NUMERIC(9, 2),
  `select` STRING,
  `x` FLOAT64,
  `yes` BOOL,
  `_misfits` STRING
)
WITH PARTITION COLUMNS (tr_class STRING, tr_dt DATE, tr_hr INT64)
OPTIONS (
  format = 'PARQUET',
  uris = ['gs://bucket/prefix/tr_table=My.Table-1/*.parquet'],
  hive_partition_uri_prefix = 'gs://bucket/prefix/tr_table=My.Table-1',
  require_hive_partition_filter = true
);
