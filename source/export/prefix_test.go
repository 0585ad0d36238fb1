package export_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// TestPrefixThatEndsInASlash: DynamoDB puts a slash of its own behind it, so that the keys have an
// empty part. The export is found from any folder, and where it was copied to a disk, whose folders
// have no empty names.
func TestPrefixThatEndsInASlash(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	from := w.clock.Now()
	w.Put("Orders", "a", "x", "")
	w.Put("Orders", "b", "x", "")
	w.clock.Advance(20 * time.Minute)
	for name, r := range map[string]source.ExportRequest{
		"full":        {Prefix: "full/", Time: w.clock.Now().Add(-6 * time.Minute)},
		"incremental": {Prefix: "incremental/", From: from, To: w.clock.Now()},
	} {
		status := w.export(r)
		if !strings.HasPrefix(status.URL, "s3://backups/"+name+"//AWSDynamoDB/") {
			t.Fatalf("%s: %+v", name, status)
		}
		folder := filepath.Join(t.TempDir(), "copied")
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(w.Buckets.Dir("backups"), name, "%2F"))); err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{status.URL, "s3://backups/" + name, "s3://backups/" + name + "/",
			"s3://backups/" + name + "//AWSDynamoDB/" + status.ARN[strings.LastIndex(status.ARN, "/")+1:], folder} {
			e := w.open(url)
			if url != folder && e.URL != strings.TrimSuffix(status.URL, "/manifest-summary.json") {
				t.Errorf("%s is at %s", url, e.URL)
			}
			var keys []string
			for _, line := range all(t, e) {
				keys = append(keys, string(slices.Concat(line.Item, line.New)))
			}
			slices.Sort(keys)
			if len(keys) != 2 || !strings.Contains(keys[0], `"a"`) || !strings.Contains(keys[1], `"b"`) {
				t.Errorf("%s: %q", url, keys)
			}
		}
	}
}

// TestIncrementalExportForItsKeysMayHaveAnyView: who needs the old images is refused.
func TestIncrementalExportForItsKeysMayHaveAnyView(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	from := w.clock.Now()
	w.Put("Orders", "a", "x", "")
	w.clock.Advance(20 * time.Minute)
	url, _ := w.filtered(`null`, `,"ExportType":"INCREMENTAL_EXPORT","IncrementalExportSpecification":{"ExportFromTime":`+
		fmt.Sprint(from.Unix())+`,"ExportViewType":"NEW_IMAGE"}`)
	want := export.Want{Source: w.src, TableID: w.info.ID, Scratch: t.TempDir()}
	_, err := export.Open(t.Context(), url, want)
	if err == nil || !strings.Contains(err.Error(), "old images are needed") {
		t.Errorf("old images: %v", err)
	}
	want.KeysOnly = true
	e, err := export.Open(t.Context(), url, want)
	if err != nil {
		t.Fatal(err)
	}
	lines := all(t, e)
	if len(lines) != 1 || !strings.Contains(string(lines[0].Keys), `"a"`) || len(lines[0].Old) != 0 {
		t.Errorf("%+v", lines)
	}
}
