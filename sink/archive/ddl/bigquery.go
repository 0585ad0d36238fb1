package ddl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// bigquery returns an external table that can only be queried with a filter on a partition. DATASET
// stands for the dataset, which the archive does not know.
// https://cloud.google.com/bigquery/docs/hive-partitioned-queries
func bigquery(at place, table string, o object.Options) (string, error) {
	if at.scheme != "gs" {
		return "", errors.New("the dialect bigquery needs an archive in gs://")
	}
	if o.Format == object.JSONLines {
		return "", errors.New("BigQuery reads no JSON lines that are compressed with zstd: archive in Parquet")
	}
	var b strings.Builder
	name := notBigQuery.ReplaceAllString(table, "_")
	fmt.Fprintf(&b, "CREATE EXTERNAL TABLE IF NOT EXISTS %s (\n", backticks("DATASET."+name))
	columns := object.AllColumns(o.Columns)
	list(&b, len(columns), func(i int) string { return backticks(columns[i].Name) + " " + bigqueryType(columns[i].Type) })
	b.WriteString(")\nWITH PARTITION COLUMNS (tr_class STRING, tr_dt DATE, tr_hr INT64)\nOPTIONS (\n")
	location := at.under("gs")
	options := []string{
		"format = 'PARQUET'",
		"uris = [" + escapedText(location+"*.parquet") + "]",
		"hive_partition_uri_prefix = " + escapedText(strings.TrimSuffix(location, "/")),
		"require_hive_partition_filter = true",
	}
	list(&b, len(options), func(i int) string { return options[i] })
	b.WriteString(");\n")
	return b.String(), nil
}

func bigqueryType(t object.Type) string {
	switch t {
	case object.Int64:
		return "INT64"
	case object.Double:
		return "FLOAT64"
	case object.Bool:
		return "BOOL"
	case object.TimestampSecond, object.TimestampMilli:
		return "TIMESTAMP"
	case object.String, object.JSON:
		return "STRING"
	}
	p, s, _ := t.Decimal()
	if s <= 9 && p-s <= 29 { // NUMERIC holds 29 digits before the point and 9 after it
		return fmt.Sprintf("NUMERIC(%d, %d)", p, s)
	}
	return fmt.Sprintf("BIGNUMERIC(%d, %d)", p, s)
}
