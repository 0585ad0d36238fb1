package ddl

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

var update = flag.Bool("update", false, "write the golden files")

var columns = []object.Column{
	{Name: "select", Path: []string{"a"}, Type: object.String},
	{Name: "amount", Path: []string{"b"}, Type: "decimal(38,10)"},
	{Name: "price", Path: []string{"c"}, Type: "decimal(9,2)"}, {Name: "n", Path: []string{"d"}, Type: object.Int64},
	{Name: "x", Path: []string{"e"}, Type: object.Double}, {Name: "yes", Path: []string{"f"}, Type: object.Bool},
	{Name: "at", Path: []string{"g"}, Type: object.TimestampSecond}, {Name: "doc", Path: []string{"h"}, Type: object.JSON},
}

func TestStatements(t *testing.T) {
	parquet := object.Options{Format: object.Parquet, Columns: columns}
	for _, c := range []struct {
		golden  string
		dialect Dialect
		url     string
		o       object.Options
	}{
		{"athena", Athena, "s3://bucket/it's/a?region=eu-west-1", parquet},
		{"athena-lines", Athena, "s3://bucket", object.Options{Format: object.JSONLines}},
		{"bigquery", BigQuery, "gs://bucket/prefix/", parquet},
		{"duckdb", DuckDB, "s3://bucket/it's/a?region=eu-west-1", parquet},
		{"duckdb-lines", DuckDB, "file:///var/lib/archive", object.Options{Format: object.JSONLines}},
		{"duckdb-azure", DuckDB, "azblob://container/p", object.Options{Format: object.Parquet}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			got, err := DDL(c.dialect, c.url, "My.Table-1", c.o)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.golden+".sql")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnEngineCannotReadIsAnError(t *testing.T) {
	parquet, lines := object.Options{Format: object.Parquet}, object.Options{Format: object.JSONLines}
	for _, c := range []struct {
		dialect Dialect
		url     string
		o       object.Options
		want    string
	}{
		{Athena, "gs://b", parquet, "s3://"}, {BigQuery, "s3://b", parquet, "gs://"}, {BigQuery, "gs://b", lines, "zstd"},
		{DuckDB, "s3://b/*", parquet, "without *"}, {DuckDB, "mem://b", parquet, "mem"},
		{"mysql", "s3://b", parquet, "mysql"},
		{DuckDB, "s3://b", object.Options{Columns: []object.Column{{Name: "id"}}}, "id"}, {DuckDB, "%", parquet, "URL"},
	} {
		if got, err := DDL(c.dialect, c.url, "T", c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %q, %v; want an error with %q", c.dialect, c.url, got, err, c.want)
		}
	}
}
