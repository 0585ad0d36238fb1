CREATE EXTERNAL TABLE IF NOT EXISTS `my_table_1` (
  `id` string,
  `deleted_at` timestamp,
  `source` string,
  `stream` string,
  `shard` string,
  `sequence` string,
  `version` bigint,
  `keys` string,
  `item` string,
  `expires` bigint,
  `amount` decimal(38,10),
  `at` timestamp,
  `doc` string,
  `n` bigint,
  `price` decimal(9,2),
  `select` string,
  `x` double,
  `yes` boolean,
  `_misfits` string
)
PARTITIONED BY (`tr_class` string, `tr_dt` string, `tr_hr` string)
STORED AS PARQUET
LOCATION 's3://bucket/it\'s/a/tr_table=My.Table-1/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.tr_class.type' = 'enum',
  'projection.tr_class.values' = 'ttl,user,inferred,healed',
  'projection.tr_dt.type' = 'date',
  'projection.tr_dt.format' = 'yyyy-MM-dd',
  'projection.tr_dt.range' = '2020-01-01,NOW+1DAYS',
  'projection.tr_hr.type' = 'integer',
  'projection.tr_hr.range' = '0,23',
  'projection.tr_hr.digits' = '2',
  'storage.location.template' = 's3://bucket/it\'s/a/tr_table=My.Table-1/tr_class=${tr_class}/tr_dt=${tr_dt}/tr_hr=${tr_hr}/'
);
