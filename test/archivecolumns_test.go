package test

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
)

// TestColumnsOfTheConfigurationAreInObjects: typed where the value fits, else null and named in _misfits. Other readers
// than the writer's library see them: Arrow, and DuckDB through the statement of `archive ddl` where it is installed.
func TestColumnsOfTheConfigurationAreInObjects(t *testing.T) {
	w := newWorld(t, 1710)
	w.archive = `{url: "file://archive", roll: 1s, max_bytes: 64MiB, ` +
		`columns: {total: {path: order.total, type: "decimal(12,2)"}, n: {type: int64}}}`
	w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
	w.prepare("Orders")
	put := func(sk, attributes string) {
		w.Put("Orders", "p", sk, fmt.Sprintf(`"expires":{"N":"%d"},%s`, w.Clock.Now().Unix()-1, attributes))
	}
	put("a", `"order":{"M":{"total":{"N":"12.5"}}},"n":{"N":"7"}`)
	put("b", `"order":{"M":{"total":{"N":"0.001"}}},"n":{"S":"seven"}`)
	put("c", `"x":{"N":"1"}`)
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
		t.Log("DuckDB is not installed: its statement is not executed")
		return
	}
	statement := w.ok("archive", "ddl", "duckdb")
	cmd := exec.Command(duckdb, "-noheader", "-list", "-nullvalue", "(null)", "-separator", " | ", "-c", statement+
		`; SELECT keys, total::DOUBLE, n, "_misfits" FROM "Orders" ORDER BY keys`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("duckdb: %v\n%s\n%s", err, statement, out)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
		t.Errorf("DuckDB reads (-want +got):\n%s", diff)
	}
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
