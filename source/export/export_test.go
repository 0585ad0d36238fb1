package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

const (
	testARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
	testID  = "01700000000000-a1b2c3d4"
)

// fixture is an export on disk, as DynamoDB writes it.
type fixture struct {
	t       *testing.T
	top     string // the folder that stands for the bucket
	prefix  string // of the keys in it
	id      string
	summary map[string]any
	files   [][]string // lines of each data file
}

func newFixture(t *testing.T, files ...[]string) *fixture {
	items := 0
	for _, lines := range files {
		items += len(lines)
	}
	return &fixture{t: t, top: t.TempDir(), prefix: "daily/", id: testID, files: files, summary: map[string]any{
		"version": "2020-06-30", "exportArn": testARN + "/export/" + testID, "tableArn": testARN, "tableId": "table-1",
		"startTime": "2023-11-14T22:20:00.000Z", "endTime": "2023-11-14T22:30:00.000Z",
		"exportTime": "2023-11-14T22:13:20.250Z", "s3Bucket": "b", "s3Prefix": "daily", "s3SseKmsKeyId": nil,
		"billedSizeBytes": 4096, "itemCount": items, "outputFormat": "DYNAMODB_JSON",
	}}
}

// incremental makes the fixture an incremental export.
func (f *fixture) incremental() *fixture {
	delete(f.summary, "exportTime")
	f.summary["exportFromTime"], f.summary["exportToTime"] = "2023-11-14T22:00:00Z", "2023-11-14T22:13:20Z"
	f.summary["exportType"], f.summary["outputView"] = Incremental, "NEW_AND_OLD_IMAGES"
	return f
}

func (f *fixture) root() string { return filepath.Join(f.top, f.prefix, container, f.id) }

func (f *fixture) path(name string) string { return filepath.Join(f.root(), name) }

// write writes all files, with the checksums of the service.
func (f *fixture) write() *fixture {
	f.t.Helper()
	data := f.prefix + container + "/" + f.id + "/data/"
	if f.summary["exportType"] == Incremental {
		data = f.prefix + container + "/data/"
	}
	f.summary["manifestFilesS3Key"] = f.prefix + container + "/" + f.id + "/" + filesName
	var manifest bytes.Buffer
	for i, lines := range f.files {
		packed := pack(f.t, lines)
		sum := md5.Sum(packed)
		key := fmt.Sprintf("%sfile%d.json.gz", data, i)
		put(f.t, filepath.Join(f.top, key), packed)
		_ = json.NewEncoder(&manifest).Encode(map[string]any{
			"itemCount": len(lines), "md5Checksum": base64.StdEncoding.EncodeToString(sum[:]),
			"etag": "e-1", "dataFileS3Key": key,
		})
	}
	put(f.t, f.path(startedTag), nil)
	f.putManifest(filesName, manifest.Bytes())
	summary, err := json.Marshal(f.summary)
	if err != nil {
		f.t.Fatal(err)
	}
	f.putManifest(summaryName, summary)
	return f
}

// putManifest writes a manifest and its checksum.
func (f *fixture) putManifest(name string, text []byte) {
	f.t.Helper()
	sum := md5.Sum(text)
	put(f.t, f.path(name), text)
	put(f.t, f.path(strings.TrimSuffix(name, ".json")+".md5"), []byte(base64.StdEncoding.EncodeToString(sum[:])))
}

func pack(t *testing.T, lines []string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, l := range lines {
		_, _ = z.Write([]byte(l + "\n"))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func items(from, to int) (lines []string) {
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf(`{"Item":{"id":{"N":"%d"},"v":{"S":"%s"}}}`, i, strings.Repeat("é\\\"", i%50)))
	}
	return lines
}

func (f *fixture) open(want Want) (*Export, error) {
	want.Scratch = f.t.TempDir()
	return Open(f.t.Context(), "file://"+f.root(), want)
}

// lines reads a whole file.
func lines(t *testing.T, e *Export, i int, after int64) (all []string) {
	t.Helper()
	err := e.ReadFile(t.Context(), i, after, func(l Line) error {
		if l.N != after+int64(len(all))+1 {
			t.Errorf("line %d comes after line %d", l.N, after+int64(len(all)))
		}
		all = append(all, string(l.Item))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFullExportIsReadFromEachLine(t *testing.T) {
	f := newFixture(t, items(0, 500), nil, items(500, 503)).write()
	put(t, filepath.Join(f.root(), "data", "file3.json.gz"), nil) // not in the manifest
	e, err := f.open(Want{TableID: "table-1", TableARN: testARN})
	if err != nil {
		t.Fatal(err)
	}
	if e.Table != "Orders" || e.Kind != Full || e.Items != 503 || e.Bytes != 4096 || len(e.Files) != 3 ||
		e.Time != 1700000000250 || e.Files[0].Size == 0 || e.URL != "file://"+f.root() {
		t.Errorf("%+v", e)
	}
	for i, want := range f.files {
		for _, after := range []int64{0, 1, int64(len(want)) - 1, int64(len(want))} {
			if after < 0 || after > int64(len(want)) {
				continue
			}
			got := lines(t, e, i, after)
			for n := range got {
				if got[n] != strings.TrimSuffix(strings.TrimPrefix(want[after:][n], `{"Item":`), `}`) {
					t.Fatalf("file %d after %d, line %d: %s", i, after, n, got[n])
				}
			}
			if len(got) != len(want)-int(after) {
				t.Errorf("file %d after %d: %d lines of %d", i, after, len(got), len(want))
			}
		}
	}
	left, err := os.ReadDir(e.scratch)
	if err != nil || len(left) != 0 {
		t.Errorf("the scratch folder has %v, %v", left, err)
	}
}

func TestIncrementalExportHasBothImages(t *testing.T) {
	meta := `"Metadata":{"WriteTimestampMicros":{"N":"1700000000123456"}}`
	f := newFixture(t, []string{
		`{` + meta + `,"Keys":{"id":{"N":"1"}},"NewImage":{"id":{"N":"1"},"v":{"S":"new"}}}`,
		`{"Keys":{"id":{"N":"2"}},"OldImage":{"id":{"N":"2"}},` + meta + `}`,
		`{` + meta + `,"Keys":{"id":{"N":"3"}},"OldImage":{"id":{"N":"3"}},"NewImage":{"id":{"N":"3"},"w":{"N":"1"}}}`,
		`{"Metadata":{"WriteTimestampMicros":"1680109764000000"},"Keys":{"id":{"N":"4"}}}`, // as AWS's guide shows it
	}).incremental().write()
	e, err := f.open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind != Incremental || e.From != 1699999200000 || e.To != 1700000000000 || e.Time != 0 {
		t.Errorf("%+v", e)
	}
	type row struct {
		keys, old, new string
		written        int64
	}
	var got []row
	if err := e.ReadFile(t.Context(), 0, 0, func(l Line) error {
		got = append(got, row{string(l.Keys), string(l.Old), string(l.New), l.Written})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []row{
		{`{"id":{"N":"1"}}`, ``, `{"id":{"N":"1"},"v":{"S":"new"}}`, 1700000000123456},
		{`{"id":{"N":"2"}}`, `{"id":{"N":"2"}}`, ``, 1700000000123456},
		{`{"id":{"N":"3"}}`, `{"id":{"N":"3"}}`, `{"id":{"N":"3"},"w":{"N":"1"}}`, 1700000000123456},
		{`{"id":{"N":"4"}}`, ``, ``, 1680109764000000},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(row{})); d != "" {
		t.Error(d)
	}
}

// TestExportIsFoundFromAnyFolder: by each of the folders that hold it, each manifest, and as a copy
// elsewhere.
func TestExportIsFoundFromAnyFolder(t *testing.T) {
	for _, f := range []*fixture{
		newFixture(t, items(0, 3)).write(),
		newFixture(t, []string{`{"Keys":{"id":{"N":"1"}}}`}).incremental().write(),
	} {
		moved := filepath.Join(t.TempDir(), "copy of daily")
		if err := os.CopyFS(moved, os.DirFS(filepath.Join(f.top, "daily"))); err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{
			f.root(), "file://" + f.root(), "file://" + f.root() + "/", f.path(summaryName), f.path(filesName),
			filepath.Join(f.top, "daily", container), filepath.Join(f.top, "daily"), moved,
		} {
			e, err := Open(t.Context(), url, Want{Scratch: t.TempDir()})
			if err != nil {
				t.Errorf("%s: %v", url, err)
				continue
			}
			if err := e.ReadFile(t.Context(), 0, 0, func(Line) error { return nil }); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			again, err := Open(t.Context(), e.URL, Want{})
			if err != nil || again.URL != e.URL {
				t.Errorf("%s again as %s: %v", url, e.URL, err)
			}
		}
	}
}

func TestSeveralExportsAreListed(t *testing.T) {
	f := newFixture(t, items(0, 3)).write()
	f.id = "01800000000000-00000000"
	f.write()
	_, err := Open(t.Context(), filepath.Join(f.top, "daily"), Want{})
	if source.Classify(err) != failure.Rejected || !strings.Contains(err.Error(), testID) ||
		!strings.Contains(err.Error(), f.id) || source.Hint(err) == "" {
		t.Error(err)
	}
}

// TestReadOnlyExport: nothing is written beside the files.
func TestReadOnlyExport(t *testing.T) {
	f := newFixture(t, items(0, 3)).write()
	for _, dir := range []string{f.path(dataFolder), f.root()} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	}
	e, err := f.open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, e, 0, 0); len(got) != 3 {
		t.Errorf("%d lines", len(got))
	}
}

// TestLongLines: an item of 400 KB of small values has megabytes of JSON, and the last line needs
// no end.
func TestLongLines(t *testing.T) {
	long := `{"Item":{"id":{"N":"1"},"l":{"L":[` + strings.Repeat(`{"NULL":true},`, 300_000) + `{"NULL":true}]}}}`
	f := newFixture(t, []string{long, long, `{"Item":{}}`}).write()
	e, err := f.open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, e, 0, 0); len(got) != 3 || len(got[0]) != len(long)-len(`{"Item":}`) || got[1] != got[0] {
		t.Errorf("%d lines", len(got))
	}
	r := lineReader{r: newBuffered("\n\n{}\n  \n{}")}
	for range 2 {
		if text, err := r.next(); string(text) != "{}" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestCallersErrorIsReturned: as it is, and the reading stops.
func TestCallersErrorIsReturned(t *testing.T) {
	e, err := newFixture(t, items(0, 10)).write().open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	stop, n := errors.New("stop"), 0
	err = e.ReadFile(t.Context(), 0, 0, func(Line) error { n++; return stop })
	if err != stop || n != 1 { //nolint:errorlint // the error itself
		t.Errorf("%d lines, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = e.ReadFile(ctx, 0, 0, func(Line) error { cancel(); return nil })
	if source.Classify(err) != failure.Canceled {
		t.Error(err)
	}
}

// TestHeartbeatsOfAnExportAreLeftOut: the count of lines is that of the file all the same.
func TestHeartbeatsOfAnExportAreLeftOut(t *testing.T) {
	ours := `{"pk":{"S":"_tr#1"},"tailrace_at":{"N":"1"}}`
	users := `{"pk":{"S":"_tr#1"}}`
	for _, c := range []struct {
		fixture *fixture
		want    int
	}{
		{newFixture(t, []string{`{"Item":` + ours + `}`, `{"Item":` + users + `}`, `{"Item":{"pk":{"S":"a"}}}`}), 2},
		{newFixture(t, []string{
			`{"Keys":` + users + `,"NewImage":` + ours + `}`,
			`{"Keys":` + users + `,"OldImage":` + ours + `}`,
			`{"Keys":` + users + `,"OldImage":` + ours + `,"NewImage":` + users + `}`,
			`{"Keys":` + users + `,"OldImage":` + users + `}`,
		}).incremental(), 2},
	} {
		e, err := c.fixture.write().open(Want{})
		if err != nil {
			t.Fatal(err)
		}
		e.heartbeats = heartbeat.NewFilter(heartbeat.Keys{Prefix: "_tr#"}, change.KeyAttr{Name: "pk", Type: 'S'})
		n := 0
		if err := e.ReadFile(t.Context(), 0, 0, func(Line) error { n++; return nil }); err != nil || n != c.want {
			t.Errorf("%s: %d lines, want %d: %v", e.Kind, n, c.want, err)
		}
	}
}
