CREATE OR REPLACE VIEW "My.Table-1" AS
SELECT
  id,
  make_timestamptz(data.created * 1000) AS deleted_at,
  source,
  regexp_extract(id, '^(.*)/[^/]*/[^/]*$', 1) AS stream,
  regexp_extract(id, '([^/]*)/[^/]*$', 1) AS shard,
  regexp_extract(id, '([^/]*)$', 1) AS sequence,
  data.version AS version,
  subject AS keys,
  CAST(data.item AS VARCHAR) AS item,
  CASE WHEN regexp_full_match(data.expiry, '-?[0-9]+') THEN TRY_CAST(data.expiry AS BIGINT) END AS expires,
  tr_table, tr_class, tr_dt, tr_hr
FROM read_json(
  '/var/lib/archive/tr_table=My.Table-1/tr_class=*/tr_dt=*/tr_hr=*/*.jsonl.zst',
  hive_partitioning = true,
  hive_types = {'tr_table': VARCHAR, 'tr_class': VARCHAR, 'tr_dt': DATE, 'tr_hr': BIGINT},
  format = 'newline_delimited',
  compression = 'zstd',
  maximum_object_size = 33554432,
  columns = {
    id: 'VARCHAR', source: 'VARCHAR', subject: 'VARCHAR',
    data: 'STRUCT(item JSON, version BIGINT, created BIGINT, expiry VARCHAR)'
  }
);
