package test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
)

// TestColumnsOfTheConfigurationAreInObjects: typed where the value fits, else null and named in
// _misfits. Other readers than the writer's library see them: Arrow, and DuckDB through the
// statement of `archive ddl` where it is installed. It also answers the queries of docs/archive.md.
func TestColumnsOfTheConfigurationAreInObjects(t *testing.T) {
	w := newWorld(t, 1710)
	w.archive = `{url: "file://archive", roll: 1s, max_bytes: 64MiB, ` +
		`columns: {total: {path: order.total, type: "decimal(12,2)"}, n: {type: int64}}}`
	w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
	at := w.Clock.Now().UTC().Truncate(time.Hour).Add(90 * time.Minute) // far from the end of an hour
	w.Clock.Advance(at.Sub(w.Clock.Now()))
	w.prepare("Orders")
	put := func(sk, attributes string) {
		w.Put("Orders", "p", sk, fmt.Sprintf(`"expires":{"N":"%d"},%s`, at.Unix()-1, attributes))
	}
	put("a", `"order":{"M":{"total":{"N":"12.5"}}},"n":{"N":"7"}`)
	put("b", `"order":{"M":{"total":{"N":"0.001"}}},"n":{"S":"seven"}`)
	put("c", `"status":{"S":"open"}`)
	w.DynamoDB.ExpireNow(w.Clock.Now())
	d := w.run()
	d.until("all are archived", func() bool { return w.readArchive().total == 3 })
	want := []string{
		`{"pk":{"S":"p"},"sk":{"S":"a"}} | 12.5 | 7 | (null)`,
		`{"pk":{"S":"p"},"sk":{"S":"b"}} | (null) | (null) | ["n","total"]`,
		`{"pk":{"S":"p"},"sk":{"S":"c"}} | (null) | (null) | (null)`,
	}
	if diff := cmp.Diff(want, w.arrowRows("keys", "total", "n", "_misfits")); diff != "" {
		t.Errorf("Arrow reads (-want +got):\n%s", diff)
	}
	duckdb, err := exec.LookPath("duckdb")
	if err != nil {
		t.Log("DuckDB is not installed: its statement and the queries of docs/archive.md are not executed")
		return
	}
	statement := w.ok("archive", "ddl", "duckdb")
	ask := func(query string) []string {
		t.Helper()
		cmd := exec.Command(duckdb, "-noheader", "-list", "-nullvalue", "(null)", "-separator", " | ",
			"-c", statement, "-c", query)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("duckdb: %v\n%s\n%s\n%s", err, statement, query, out)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	}
	if diff := cmp.Diff(want, ask(`SELECT keys, total::DOUBLE, n, "_misfits" FROM "Orders" ORDER BY keys`)); diff != "" {
		t.Errorf("DuckDB reads (-want +got):\n%s", diff)
	}
	answers := [][]string{
		{fmt.Sprintf("%d | 3 | 12.50", at.Hour())},
		{fmt.Sprintf(`{"expires":{"N":"%d"},"n":{"N":"7"},"order":{"M":{"total":{"N":"12.5"}}},`+
			`"pk":{"S":"p"},"sk":{"S":"a"}}`, at.Unix()-1)},
		{"open | 1", "(null) | 2"},
		{`{"pk":{"S":"p"},"sk":{"S":"b"}} | ["n","total"] | {"N":"0.001"}`},
		{},
	}
	queries := queriesOf(t, "../docs/archive.md")
	if len(queries) != len(answers) {
		t.Fatalf("%d queries: %q", len(queries), queries)
	}
	for i, query := range queries {
		query = strings.NewReplacer("2026-05-04", at.Format(time.DateOnly), `{"S":"o-3"}`, `{"S":"p"}`,
			`{"N":"7"}`, `{"S":"a"}`).Replace(query)
		query = strings.Replace(query, "SELECT deleted_at,", "SELECT", 1) // when the sandbox has swept, to the second
		if diff := cmp.Diff(answers[i], ask(query)); diff != "" {
			t.Errorf("DuckDB answers to %s (-want +got):\n%s", query, diff)
		}
	}
}

// queriesOf returns the queries of the block of SQL in a document.
func queriesOf(t *testing.T, name string) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	for query := range strings.SplitSeq(block, ";\n") {
		if query = strings.TrimSpace(query); query != "" {
			queries = append(queries, query)
		}
	}
	return queries
}

// arrowRows returns columns of all objects as Apache Arrow reads them, in order.
func (w *world) arrowRows(columns ...string) (rows []string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, "archive"), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".parquet") {
			return err
		}
		f, err := file.OpenParquetFile(name, false)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			return err
		}
		table, err := r.ReadTable(w.t.Context())
		if err != nil {
			return err
		}
		defer table.Release()
		batches := array.NewTableReader(table, 0)
		defer batches.Release()
		for batches.Next() {
			batch := batches.RecordBatch()
			for i := range int(batch.NumRows()) {
				var cells []string
				for _, column := range columns {
					for _, at := range batch.Schema().FieldIndices(column) {
						cells = append(cells, batch.Column(at).ValueStr(i))
					}
				}
				rows = append(rows, strings.Join(cells, " | "))
			}
		}
		return batches.Err()
	})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}
