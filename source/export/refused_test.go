package export

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

func newBuffered(text string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(text), 16) }

// TestForeignOrUnfinishedExportsAreRefused: each with a reason and with what to do, before any line
// is read.
func TestForeignOrUnfinishedExportsAreRefused(t *testing.T) {
	set := func(name string, value any) func(*fixture) {
		return func(f *fixture) { f.summary[name] = value }
	}
	after := func(change func(*fixture)) func(*fixture) {
		return func(f *fixture) { f.write(); change(f) }
	}
	remove := func(path string) func(*fixture) {
		return after(func(f *fixture) { _ = os.Remove(f.path(path)) })
	}
	rewrite := func(path string, text string) func(*fixture) {
		return after(func(f *fixture) { put(f.t, f.path(path), []byte(text)) })
	}
	for name, c := range map[string]struct {
		change func(*fixture)
		class  failure.Class
		says   string
	}{
		"another table":    {set("tableArn", testARN+"2"), failure.Rejected, "Orders2"},
		"re-created table": {set("tableId", "table-0"), failure.Rejected, "table-0"},
		"Ion":              {set("outputFormat", "ION"), failure.Rejected, "ION"},
		"failed":           {set("exportStatus", "FAILED"), failure.Rejected, "FAILED"},
		"new images only": {func(f *fixture) {
			f.incremental().summary["outputView"] = "NEW_IMAGE"
		}, failure.Rejected, "NEW_IMAGE"},
		"filtered": {set("filterSpecification", map[string]any{"projectionExpression": "pk"}), failure.Rejected,
			"filterSpecification"},
		"unknown type":      {set("exportType", "HALF_EXPORT"), failure.Rejected, "HALF_EXPORT"},
		"no time":           {set("exportTime", ""), failure.Fatal, "exportTime"},
		"count":             {set("itemCount", 4), failure.Fatal, "4 items"},
		"negative count":    {set("itemCount", -1), failure.Fatal, "negative"},
		"no summary":        {remove(summaryName), failure.Rejected, "not complete"},
		"no files manifest": {remove(filesName), failure.Missing, filesName},
		"no checksum":       {remove("manifest-files.md5"), failure.Missing, "manifest-files.md5"},
		"missing file":      {remove("data/file0.json.gz"), failure.Missing, "file0.json.gz"},
		"altered summary":   {rewrite(summaryName, `{"tableArn":"x"}`), failure.Fatal, summaryName},
		"altered list":      {rewrite(filesName, ``), failure.Fatal, filesName},
		"no JSON": {after(func(f *fixture) {
			f.putManifest(summaryName, []byte(`{`))
		}), failure.Fatal, summaryName},
		"no list": {after(func(f *fixture) {
			f.putManifest(filesName, []byte(`{"itemCount":3}`))
		}), failure.Fatal, "md5Checksum"},
		"files elsewhere": {after(func(f *fixture) {
			f.putManifest(filesName, []byte(`{"itemCount":3,"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==",`+
				`"dataFileS3Key":"daily/AWSDynamoDB/`+f.id+`/../../../../etc/passwd"}`))
		}), failure.Fatal, "passwd"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, items(0, 3))
			c.change(f)
			if _, err := os.Stat(f.root()); err != nil {
				f.write()
			}
			e, err := f.open(Want{TableID: "table-1", TableARN: testARN})
			if e != nil || source.Classify(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v: %v", source.Classify(err), err)
			}
			if source.Hint(err) == "" && name != "unknown type" {
				t.Errorf("%v: nothing to do", err)
			}
		})
	}
}

func TestFoldersWithoutExport(t *testing.T) {
	empty := t.TempDir()
	for url, class := range map[string]failure.Class{
		empty: failure.Missing, filepath.Join(empty, "none"): failure.Missing, "ftp://b/x": failure.Rejected,
		"file://relative/x": failure.Rejected, "s3://": failure.Rejected, "s3://b/x": failure.Fatal,
	} {
		_, err := Open(t.Context(), url, Want{})
		if source.Classify(err) != class || source.Hint(err) == "" && class != failure.Fatal {
			t.Errorf("%s: %v: %v", url, source.Classify(err), err)
		}
	}
}

// TestBrokenFileGivesNoItem: a file that was altered, cut, lost or replaced after the export was
// opened is an error that names it, and not even its first, intact lines are handed out.
func TestBrokenFileGivesNoItem(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string, packed []byte)
		class  failure.Class
	}{
		"altered": {func(path string, packed []byte) {
			packed[len(packed)/2] ^= 1
			put(t, path, packed)
		}, failure.Fatal},
		"cut":      {func(path string, packed []byte) { put(t, path, packed[:len(packed)-1]) }, failure.Fatal},
		"emptied":  {func(path string, _ []byte) { put(t, path, nil) }, failure.Fatal},
		"replaced": {func(path string, _ []byte) { put(t, path, pack(t, items(7, 9))) }, failure.Fatal},
		"lost":     {func(path string, _ []byte) { _ = os.Remove(path) }, failure.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, items(0, 2000)).write()
			e, err := f.open(Want{})
			if err != nil {
				t.Fatal(err)
			}
			path := f.path("data/file0.json.gz")
			packed, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.change(path, packed)
			n := 0
			err = e.ReadFile(t.Context(), 0, 0, func(Line) error { n++; return nil })
			if n != 0 || source.Classify(err) != c.class || !strings.Contains(err.Error(), "file0.json.gz") ||
				source.Hint(err) == "" {
				t.Errorf("%d lines, %v: %v", n, source.Classify(err), err)
			}
		})
	}
}

// TestManifestThatCountsWrong: a file whose MD5 is right and whose number of lines is not, and one
// with a line that is none.
func TestManifestThatCountsWrong(t *testing.T) {
	f := newFixture(t, []string{`{"Item":{}}`, `{"Item":1}`}).write()
	e, err := f.open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	err = e.ReadFile(t.Context(), 0, 0, func(Line) error { return nil })
	if source.Classify(err) != failure.Fatal || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
	f = newFixture(t, items(0, 3)).write()
	if e, err = f.open(Want{}); err != nil {
		t.Fatal(err)
	}
	e.Files[0].Items = 4
	err = e.ReadFile(t.Context(), 0, 0, func(Line) error { return nil })
	if source.Classify(err) != failure.Fatal || !strings.Contains(err.Error(), "3 items") {
		t.Error(err)
	}
}

func TestScratchWithoutRoomSaysSo(t *testing.T) {
	e, err := newFixture(t, items(0, 3)).write().open(Want{})
	if err != nil {
		t.Fatal(err)
	}
	e.scratch = filepath.Join(t.TempDir(), "none") // it is made
	if err := e.ReadFile(t.Context(), 0, 0, func(Line) error { return nil }); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.scratch = filepath.Join(file, "none") // below a file it cannot be made
	err = e.ReadFile(t.Context(), 0, 0, func(Line) error { return nil })
	if source.Classify(err) != failure.Fatal || !strings.Contains(source.Hint(err), "scratch") {
		t.Error(err)
	}
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"Item":{"a":{"S":"x"}}}`, `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"a":{"N":"1"}},"NewImage":{}}`,
		`{"Item":1}`, `{"Metadata":{"WriteTimestampMicros":{"N":"`, `{}`, ``, `{"Metadata":{"WriteTimestampMicros":{"N":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range []string{Full, Incremental} {
			l, err := parseLine(text, kind)
			if err == nil && (kind == Full && l.Item[0] != '{' || kind == Incremental && l.Keys[0] != '{') {
				t.Errorf("%s line %q: %+v", kind, text, l)
			}
		}
	})
}

func FuzzManifests(f *testing.F) {
	f.Add([]byte(`{"itemCount":1,"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==","etag":"e",` +
		`"dataFileS3Key":"AWSDynamoDB/x/data/y"}`))
	f.Add([]byte(`{"tableArn":"a","manifestFilesS3Key":"AWSDynamoDB/x/manifest-files.json","itemCount":1,` +
		`"exportTime":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parseSummary(text); err == nil {
			_, _ = s.export(Want{})
		}
		files, err := parseFiles(text)
		if err != nil {
			return
		}
		for _, file := range files {
			key, err := relocate(file.Key, "AWSDynamoDB/x/manifest-files.json", "/top/AWSDynamoDB/x")
			if err == nil && !strings.HasPrefix(key, "/top/AWSDynamoDB/") {
				t.Errorf("%q lies at %q", file.Key, key)
			}
		}
	})
}
