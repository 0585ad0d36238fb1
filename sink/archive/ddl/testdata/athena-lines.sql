CREATE EXTERNAL TABLE IF NOT EXISTS `my_table_1` (
  `id` string,
  `source` string,
  `type` string,
  `subject` string,
  `time` string,
  `data` struct<`table`:string,`keys`:string,`item`:string,`version`:bigint,`created`:bigint,`expiry`:string>
)
PARTITIONED BY (`tr_class` string, `tr_dt` string, `tr_hr` string)
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
LOCATION 's3://bucket/tr_table=My.Table-1/'
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
  'storage.location.template' = 's3://bucket/tr_table=My.Table-1/tr_class=${tr_class}/tr_dt=${tr_dt}/tr_hr=${tr_hr}/'
);
