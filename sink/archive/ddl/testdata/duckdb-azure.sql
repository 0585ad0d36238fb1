CREATE OR REPLACE VIEW "My.Table-1" AS
SELECT * FROM read_parquet(
  'az://container/p/tr_table=My.Table-1/tr_class=*/tr_dt=*/tr_hr=*/*.parquet',
  hive_partitioning = true,
  hive_types = {'tr_table': VARCHAR, 'tr_class': VARCHAR, 'tr_dt': DATE, 'tr_hr': BIGINT},
  union_by_name = true
);
