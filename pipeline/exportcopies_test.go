package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/sandbox/s3"
	"github.com/tailrace-cdc/replicator/source"
)

// exportable makes an old table of which exports can be made into the bucket backups.
func (w *world) exportable(n int) {
	w.t.Helper()
	w.createTable("Orders")
	w.post("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	if err := w.buckets.Create("backups"); err != nil {
		w.t.Fatal(err)
	}
	srv, err := s3.Serve("127.0.0.1:0", w.buckets)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = srv.Close() })
	w.s3, w.sopts = srv, func(o *source.Options) { o.S3Endpoint = srv.URL() }
	w.fillOld(n)
}

// export exports a table and returns the folder below the bucket.
func (w *world) export(table string, files int, more string) string {
	w.t.Helper()
	w.tables.SetExports(0, files)
	reply := w.ask("ExportTableToPointInTime", fmt.Sprintf(
		`{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/%s","S3Bucket":"backups"%s}`, table, more))
	w.tables.FinishExports()
	id := regexp.MustCompile(`"ExportArn":"[^"]*/export/([^"]*)"`).FindStringSubmatch(reply)
	if id == nil {
		w.t.Fatalf("export: %s", reply)
	}
	return "AWSDynamoDB/" + id[1]
}

// ask is post that returns the reply.
func (w *world) ask(op, body string) string {
	w.t.Helper()
	req := httptest.NewRequest(http.MethodPost, w.http.URL, strings.NewReader(body))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=sandbox/20261121/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	req.Header.Set("X-Amz-Date", w.clock.Now().UTC().Format("20060102T150405Z"))
	rec := httptest.NewRecorder()
	w.tables.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", op, rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// dataFiles returns the data files of an export.
func (w *world) dataFiles(folder string) (names []string) {
	w.t.Helper()
	root := filepath.Join(w.buckets.Dir("backups"), filepath.FromSlash(folder), "data")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".gz") {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		w.t.Fatalf("data files of %s: %v, %v", root, names, err)
	}
	return names
}

// watchValues reads the target all the time until stop is called. It fails the test when an item
// shows an older value than before, or when one that was there and gone is there again.
func (r *run) watchValues() (stop func()) {
	ctx, end := context.WithCancel(r.t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		newest, gone := map[string]int{}, map[string]bool{}
		for ctx.Err() == nil {
			began := time.Now()
			rows := r.stored("Orders")
			r.pause(ctx, time.Since(began))
			for key := range newest {
				gone[key] = gone[key] || rows[key] == nil
			}
			for key, cells := range rows {
				v := -1
				for _, c := range cells {
					if i := strings.Index(c, `"n"=`); i >= 0 {
						_, _ = fmt.Sscanf(strings.Trim(c[i+4:], `"`), "%d", &v)
					}
				}
				if last, seen := newest[key]; gone[key] || seen && v < last {
					r.t.Errorf("row %q shows %d after %d, gone before: %v", key, v, last, gone[key])
				}
				newest[key] = v
			}
		}
	})
	return func() {
		end()
		reading.Wait()
	}
}

// TestExistingExportIsCopied from a folder and from S3, beside changes and deletes of the same
// items from before and after the export. A reader sees nothing step back or come back.
func TestExistingExportIsCopied(t *testing.T) {
	long(t, "15 s")
	for _, from := range []string{"file", "s3"} {
		t.Run(from, func(t *testing.T) {
			w := newWorld(t)
			w.exportable(400)
			w.put("Orders", "p#3", "s3", `"n":{"N":"1"}`)
			folder := w.export("Orders", 3, "")
			w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + folder}
			if from == "file" {
				w.backfill.URL = "file://" + filepath.Join(w.buckets.Dir("backups"), filepath.FromSlash(folder))
			}
			w.put("Orders", "p#3", "s3", `"n":{"N":"2"}`)
			for i := range 7 {
				w.delete("Orders", fmt.Sprint("p#", i), fmt.Sprint("s", i+7))
			}
			r := w.start("Orders")
			stop := r.watchValues()
			i := 2
			r.until("the export is copied", func() bool { // changes before each look
				if !w.load.outruns(w.clock.Now()) {
					i++
					w.put("Orders", "p#3", "s3", fmt.Sprintf(`"n":{"N":"%d"}`, i))
					if k := 40 + i; k < 400 {
						w.delete("Orders", fmt.Sprint("p#", k%97), fmt.Sprint("s", k))
					}
				}
				return r.table("Orders").State == "running"
			})
			r.copied()
			r.settle()
			stop()
			r.equal()
			if n := len(r.stored("Orders")); n == 0 {
				t.Error("nothing is left to compare")
			}
		})
	}
}

// TestExportBesideAStreamThatWasJustEnabled: an export of the moment of the first start is older
// than the stream may be joined to. The copy asks for it when it is not, and the first start needs
// no operator.
func TestExportBesideAStreamThatWasJustEnabled(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.exportable(60)
	w.finishExports()
	w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,`+
		`"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	w.changeItems("Orders", 93, 20)
	w.backfill = pipeline.Backfill{From: "export", Bucket: "backups"}
	r := w.start("Orders")
	r.until("the table is copied", func() bool {
		w.clock.Advance(100 * time.Millisecond)
		st := r.table("Orders")
		if st.Copy != nil && st.Copy.Paused != "" {
			t.Fatal(st.Copy.Sentence())
		}
		return st.State == "running" && st.Copy == nil
	})
	w.changeItems("Orders", 94, 20)
	r.settle()
	r.equal()
	if n := strings.Count(w.ask("ListExports", `{}`), `"ExportArn"`); n != 1 {
		t.Errorf("%d exports were made", n)
	}
}

// TestFilteredExportIsNotCopied: the first start is refused before anything is stored, whichever
// expression filters it; with a whole export of the same moment it goes on.
func TestFilteredExportIsNotCopied(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.exportable(60)
	half := w.export("Orders", 2, `,"FilterSpecification":{"FilterExpression":"v < :half",`+
		`"ExpressionAttributeValues":{":half":{"N":"30"}}}`)
	keys := w.export("Orders", 2, `,"FilterSpecification":{"ProjectionExpression":"pk, sk"}`)
	whole := w.export("Orders", 2, "")
	for url, member := range map[string]string{
		"s3://backups/" + half: "FilterExpression", "file://" + w.buckets.Dir("backups") + "/" + keys: "ProjectionExpression",
	} {
		w.backfill = pipeline.Backfill{From: "export", URL: url}
		r := w.start("Orders")
		r.until("the start is refused", func() bool {
			return strings.Contains(strings.Join(r.table("Orders").Reasons, " "), "not whole: it was made with "+member)
		})
		if rows := r.stored("Orders"); len(rows) > 0 {
			t.Fatalf("%d rows of a filtered export are in the target", len(rows))
		}
		_ = r.stop()
	}
	w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + whole}
	r := w.start("Orders")
	r.copied()
	r.settle()
	r.equal()
	if n := len(r.stored("Orders")); n != 60 {
		t.Errorf("%d rows", n)
	}
	if ok, why := r.p.Ready(); !ok {
		t.Errorf("not ready: %v", why)
	}
}

// TestExportIsAskedForOnce, whoever goes on with the copy.
func TestExportIsAskedForOnce(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	w.exportable(200)
	w.tables.SetExports(time.Hour, 2)
	w.backfill = pipeline.Backfill{From: "export", Bucket: "backups"}
	for range 3 {
		r := w.start("Orders")
		r.until("the export is being made", func() bool {
			c := r.table("Orders").Copy
			return c != nil && strings.Contains(c.Waits, "exports the table since")
		})
		w.put("Orders", "p#1", "s1", `"n":{"N":"1"}`)
		_ = r.stop()
	}
	w.clock.Advance(time.Hour)
	w.tables.FinishExports()
	r := w.start("Orders")
	r.copied()
	r.settle()
	r.equal()
	if n := strings.Count(w.ask("ListExports", `{}`), `"ExportArn"`); n != 1 {
		t.Errorf("%d exports were made", n)
	}
}

// TestExportThatCannotBeReadNowHoldsOnlyTheCopy: it is not there yet, or one of its files is
// missing, cut or altered. The stream goes on, the status says what is missing, and the copy goes
// on when it is there.
func TestExportThatCannotBeReadNowHoldsOnlyTheCopy(t *testing.T) {
	long(t, "20 s")
	change := func(f func([]byte) []byte) func(string) (string, func() error) {
		return func(name string) (string, func() error) {
			body, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, f(bytes.Clone(body)), 0o600)
			}
			return filepath.Base(name), func() error {
				if err != nil {
					return err
				}
				return os.WriteFile(name, body, 0o600)
			}
		}
	}
	for what, spoil := range map[string]func(name string) (reason string, mend func() error){
		"missing": func(name string) (string, func() error) {
			err := os.Rename(name, name+".away")
			return filepath.Base(name), func() error {
				if err != nil {
					return err
				}
				return os.Rename(name+".away", name)
			}
		},
		"cut":     change(func(b []byte) []byte { return b[:len(b)/2] }),
		"altered": change(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"export is not there": func(name string) (string, func() error) {
			folder := filepath.Dir(filepath.Dir(name))
			err := os.Rename(folder, folder+".away")
			return "open export", func() error {
				if err != nil {
					return err
				}
				return os.Rename(folder+".away", folder)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.exportable(150)
			folder := w.export("Orders", 3, "")
			w.backfill = pipeline.Backfill{From: "export",
				URL: "file://" + filepath.Join(w.buckets.Dir("backups"), filepath.FromSlash(folder))}
			reason, mend := spoil(w.dataFiles(folder)[1])
			r := w.start("Orders")
			r.until("the status says what is missing", func() bool {
				c := r.table("Orders").Copy
				return c != nil && strings.Contains(c.Waits, reason)
			})
			w.put("Orders", "p#1", "s1", `"n":{"N":"1"}`)
			r.settle()
			if ok, _ := r.p.Ready(); ok {
				t.Error("ready before the copy is complete")
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			r.copied()
			r.settle()
			r.equal()
		})
	}
}

// TestExportThatCannotBeCopiedIsRefused before anything is stored: of another table, in Ion,
// incremental, older than the stream.
func TestExportThatCannotBeCopiedIsRefused(t *testing.T) {
	long(t, "5 s")
	for what, c := range map[string]struct {
		export func(w *world) string
		reason string
	}{
		"other table": {func(w *world) string {
			w.createTable("Others")
			w.post("UpdateContinuousBackups",
				`{"TableName":"Others","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
			return w.export("Others", 1, "")
		}, "Others"},
		"Ion": {func(w *world) string { return w.export("Orders", 1, `,"ExportFormat":"ION"`) }, "ION"},
		"incremental": {func(w *world) string {
			at := w.clock.Now()
			return w.export("Orders", 1, fmt.Sprintf(`,"ExportType":"INCREMENTAL_EXPORT",
				"IncrementalExportSpecification":{"ExportFromTime":%d,"ExportToTime":%d}`,
				at.Add(-2*time.Hour).Unix(), at.Add(-time.Hour).Unix()))
		}, "incremental"},
		"older than the stream": {func(w *world) string {
			folder := w.export("Orders", 1, "")
			w.clock.Advance(25 * time.Hour)
			return folder
		}, "changes between the two"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.exportable(20)
			w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + c.export(w)}
			r := w.start("Orders")
			r.until("the status says why", func() bool { return strings.Contains(fmt.Sprint(r.p.Status().Reasons), c.reason) })
			if s := r.fold("Orders"); s != nil && s.LiveStream() != nil {
				t.Error("the table was started")
			}
		})
	}
}

// TestCopyOfAnExportGoesOnInTheMiddleOfAFile after a stop, which stores the marks of the pages that
// are complete.
func TestCopyOfAnExportGoesOnInTheMiddleOfAFile(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t)
	w.exportable(40)
	large := strings.Repeat("x", 4000)
	for i := range 3000 { // more pages than are written at once
		w.put("Orders", fmt.Sprint("q#", i%5), fmt.Sprint(i), fmt.Sprintf(`"v":{"S":%q}`, large))
	}
	w.clock.Advance(25 * time.Hour)
	w.streams.Sweep()
	folder := w.export("Orders", 1, "")
	w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + folder, WriteRows: 200}
	r := w.start("Orders")
	r.until("the copy is in the middle of the file", func() bool {
		c := r.table("Orders").Copy
		return c != nil && c.Items > 0
	})
	_ = r.stop()
	w.backfill.WriteRows = 0
	r = w.open("Orders")
	if c := r.fold("Orders").CopyRunning(); c == nil || c.Marks[0].After == "" {
		t.Errorf("the copy begins again: %+v", c)
	}
	r.begin()
	w.changeItems("Orders", 1, 30)
	r.copied()
	r.settle()
	r.equal()
}
