package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// TestWorkersAreRefused before DynamoDB is asked to export anything: a place that is none, exports
// without a bucket of S3, and a mapping with secrets, which no worker can compile.
func TestWorkersAreRefused(t *testing.T) {
	t.Setenv("AUDIT_KEY", "0123456789abcdef0123456789abcdef")
	w := &world{World: daemontest.New(t, 71), t: t}
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.Prepare("Orders")
	w.d = w.Run()
	w.put(3, "1")
	refused := func(workers audit.Workers, want string) {
		t.Helper()
		_, s := w.Pair("Orders")
		var err error
		w.While("it is refused", func() {
			_, err = audit.Full(t.Context(), w.Config, s, audit.Options{Workers: &workers})
		})
		if class, _ := failure.Of(err); err == nil || class != failure.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", workers, err, want)
		}
	}
	refused(audit.Workers{Folder: "no URL"}, "no URL of a folder")
	refused(audit.Workers{Folder: "ftp://there"}, "scheme")
	refused(audit.Workers{Folder: "file://" + t.TempDir()}, "exports to S3")
	refused(audit.Workers{Folder: "file://" + t.TempDir(), Exports: "gs://copies"}, "exports to S3")
	w.Write("secret.yaml", `mapping: 1
secrets: {k1: "${AUDIT_KEY}"}
families: {d: {max_versions: 1}}
rules:
- name: hat
  match: {pk: "{p}", sk: "{s}"}
  row: "{p|hmac(k1,16)}#{s}"
  cells: [{attr: n, to: "d:n"}]
`)
	w.d.Stop()
	w.Configure("{source: Hats, target: hats, mapping: secret.yaml, backfill: none}")
	w.Prepare("Hats")
	w.d = w.Run()
	w.d.Settle()
	_, s := w.Pair("Hats")
	var err error
	w.While("it is refused", func() {
		_, err = audit.Full(t.Context(), w.Config, s, audit.Options{Workers: &audit.Workers{Folder: "s3://backups/x"}})
	})
	if class, _ := failure.Of(err); class != failure.Usage || !strings.Contains(err.Error(), "secrets") {
		t.Errorf("a mapping with secrets: %v", err)
	}
	// Both would keep a result in one place, and each would remove the keys of the other.
	lock, err := audit.LockScratch(filepath.Join(audit.SavedDir(w.Config.Scratch, w.Config.Pipeline, "hats"), "all"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	w.While("it is refused", func() {
		_, err = audit.Full(t.Context(), w.Config, s, audit.Options{Workers: &audit.Workers{Folder: "s3://backups/x"}})
	})
	if class, _ := failure.Of(err); class != failure.Unready || !strings.Contains(err.Error(), "another verify") {
		t.Errorf("beside a comparison in one process: %v", err)
	}
	if reply := string(w.Call("ListExports", "{}")); strings.Contains(reply, "ExportArn") {
		t.Errorf("an export was asked for: %s", reply)
	}
}

// TestJobOfAnotherRecordIsNotGoneOnWith: its exports are older than the logs' positions of this
// record, and what changed between the two would be compared by neither.
func TestJobOfAnotherRecordIsNotGoneOnWith(t *testing.T) {
	w := newWorld(t, 72)
	w.d = w.Run()
	w.put(3, "1")
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	dir := filepath.Join(audit.SavedDir(w.Config.Scratch, "shop", "orders"), "workers")
	begun := func() (job string, said string) {
		t.Helper()
		_, s := w.Pair("Orders")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all strings.Builder
		w.While("it waits", func() {
			_, _ = audit.Full(ctx, w.Config, s, audit.Options{
				Workers: &audit.Workers{Folder: "file://" + dir + "-folder", Exports: "s3://backups/x"},
				Say: func(line string) {
					all.WriteString(line + "\n")
					if strings.HasPrefix(line, "DynamoDB exports") {
						stop()
					}
				},
			})
		})
		text, err := os.ReadFile(filepath.Join(dir, "job.json"))
		if err != nil {
			t.Fatalf("%v: %s", err, &all)
		}
		return string(text), all.String()
	}
	if err := w.Buckets.Create("backups"); err != nil {
		t.Fatal(err)
	}
	first, _ := begun()
	// DynamoDB names an export by the begin of a second. A change that Bigtable lost, made after
	// that moment and before the positions of the logs, would be in no export, and would never be
	// compared again.
	var job struct{ Exports []string }
	var record struct{ Began time.Time }
	var export struct{ ExportDescription struct{ ExportTime float64 } }
	text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "begun.json"))
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(first), &job), json.Unmarshal(text, &record))
	}
	if err != nil || len(job.Exports) != 1 {
		t.Fatalf("%s: %v", first, err)
	}
	reply := w.Call("DescribeExport", `{"ExportArn":"`+job.Exports[0]+`"}`)
	if err := json.Unmarshal(reply, &export); err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(int64(1000 * export.ExportDescription.ExportTime))
	if at.Before(record.Began.Add(time.Duration(protocol.DateStep) * time.Millisecond)) {
		t.Errorf("the export shows %s, and the record began at %s", at, record.Began)
	}
	again, said := begun()
	if first != again || !strings.Contains(said, "going on") {
		t.Errorf("the same record: %s, then %s: %s", first, again, said)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(dir), "begun.json")); err != nil { // so it is another record
		t.Fatal(err)
	}
	other, said := begun()
	if other == first || strings.Contains(said, "going on") {
		t.Errorf("another record: %s, then %s: %s", first, other, said)
	}

	// Findings in the folder are of the ranges of a plan that was removed: the next plan has
	// others.
	var noted map[string]any
	if err := json.Unmarshal([]byte(other), &noted); err != nil {
		t.Fatal(err)
	}
	noted["planned"] = true
	text, err = json.Marshal(noted)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	third, said := begun()
	var now map[string]any
	err = json.Unmarshal([]byte(third), &now)
	if err != nil || now["id"] == noted["id"] || now["folder"] == noted["folder"] ||
		fmt.Sprint(now["exports"]) != fmt.Sprint(noted["exports"]) || !strings.Contains(said, "is gone") {
		t.Errorf("a plan that is gone: %s, then %s: %s: %v", text, third, said, err)
	}
	// Another comparison's plan lies in the folder.
	f, err := distributed.Open(t.Context(), now["folder"].(string), "")
	if err == nil {
		err = f.StorePlan(t.Context(), &distributed.Plan{ID: "0123456789ab", Tables: make([]distributed.Table, 1)})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, s := w.Pair("Orders")
	w.While("it is refused", func() {
		_, err = audit.Full(t.Context(), w.Config, s, audit.Options{
			Workers: &audit.Workers{Folder: "file://" + dir + "-folder", Exports: "s3://backups/x"},
		})
	})
	if class, _ := failure.Of(err); class != failure.Unready || !strings.Contains(err.Error(), "0123456789ab") {
		t.Errorf("the plan of another comparison: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "job.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the comparison continues, although its folder has another plan: %v", err)
	}
}
