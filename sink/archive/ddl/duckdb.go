package ddl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// duckdb returns a view. It has the same columns in both formats, but JSON lines have none of the
// configured ones. https://duckdb.org/docs/stable/data/partitioning/hive_partitioning
func duckdb(at place, table string, o object.Options) (string, error) {
	if strings.ContainsAny(at.path, "*?[") {
		return "", errors.New("the dialect duckdb needs a URL without *, ? and [, which stand for other characters there")
	}
	from, ok := map[string]string{
		"s3": at.under("s3"), "gs": at.under("gs"), "azblob": at.under("az"), "file": "/" + at.path,
	}[at.scheme]
	if !ok {
		return "", fmt.Errorf("the dialect duckdb reads no %s://", at.scheme)
	}
	from += "tr_class=*/tr_dt=*/tr_hr=*/*." + o.Format.Extension()
	const types = "{'tr_table': VARCHAR, 'tr_class': VARCHAR, 'tr_dt': DATE, 'tr_hr': BIGINT}"
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE OR REPLACE VIEW %s AS\n", doubled(table, '"'))
	if o.Format == object.JSONLines {
		b.WriteString(duckdbSelect)
	} else {
		b.WriteString("SELECT * FROM read_parquet(")
	}
	options := []string{
		doubled(from, '\''), "hive_partitioning = true", "hive_types = " + types,
	}
	if o.Format == object.JSONLines {
		options = append(options, "format = 'newline_delimited'", "compression = 'zstd'",
			"maximum_object_size = 33554432", "columns = "+duckdbLine)
	} else {
		options = append(options, "union_by_name = true")
	}
	b.WriteString("\n")
	list(&b, len(options), func(i int) string { return options[i] })
	b.WriteString(");\n")
	return b.String(), nil
}

// duckdbSelect gives the members of a CloudEvent the names of Parquet's columns.
const duckdbSelect = `SELECT
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
FROM read_json(`

// duckdbLine is the type of a line. Numbers that need not be integers are text.
const duckdbLine = "{\n    id: 'VARCHAR', source: 'VARCHAR', subject: 'VARCHAR',\n" +
	"    data: 'STRUCT(item JSON, version BIGINT, created BIGINT, expiry VARCHAR)'\n  }"

// doubled quotes a name or a text.
func doubled(s string, quote byte) string {
	q := string(quote)
	return q + strings.ReplaceAll(s, q, q+q) + q
}
