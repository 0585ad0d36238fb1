// Package ddl writes the statements by which query engines read an archive: Athena, BigQuery,
// DuckDB.
package ddl

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Dialect is the engine that a statement is for.
type Dialect string

// The dialects.
const (
	Athena   Dialect = "athena"
	BigQuery Dialect = "bigquery"
	DuckDB   Dialect = "duckdb"
)

// Dialects are all of them.
var Dialects = []Dialect{Athena, BigQuery, DuckDB}

// classes are the values of the partition tr_class.
var classes = []string{
	string(transform.ClassTTL), string(transform.ClassUser), string(transform.ClassInferred),
	string(transform.ClassHealed),
}

// DDL returns the statement for the archive of a table under a URL as the configuration has it:
// s3://bucket/prefix, gs://bucket/prefix, azblob://container/prefix or file:///directory. The error
// names what the engine cannot read.
func DDL(d Dialect, rawURL, table string, o object.Options) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", fmt.Errorf("read archive URL: %w", err)
	}
	if problems := object.ValidateColumns(o.Columns); len(problems) > 0 {
		return "", problems[0]
	}
	at := place{scheme: u.Scheme, path: strings.Trim(u.Host+u.Path, "/") + "/" + layout.Table(table)}
	switch d {
	case Athena:
		return athena(at, table, o)
	case BigQuery:
		return bigquery(at, table, o)
	case DuckDB:
		return duckdb(at, table, o)
	}
	return "", fmt.Errorf("no dialect %q: %v", d, Dialects)
}

// place is where the objects of a table are.
type place struct {
	scheme string
	path   string // bucket, prefix, tr_table=…, with a slash at its end
}

// under returns the URL with another scheme.
func (p place) under(scheme string) string { return scheme + "://" + p.path }

var (
	notAthena   = regexp.MustCompile(`[^a-z0-9_]`)
	notBigQuery = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// list writes one line for each of n elements, with commas between them.
func list(b *strings.Builder, n int, line func(i int) string) {
	for i := range n {
		b.WriteString("  " + line(i))
		if i < n-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
}

// backticks quotes a name for Athena and BigQuery.
func backticks(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// escapedText is a string literal with backslashes, as Athena's DDL and BigQuery read it.
func escapedText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
