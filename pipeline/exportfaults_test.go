package pipeline_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// s3Error answers as S3 does when it refuses a request.
func s3Error(status int, code string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/xml")
		rw.WriteHeader(status)
		_, _ = fmt.Fprintf(rw, `<?xml version="1.0"?><Error><Code>%s</Code><Message>by the test</Message></Error>`, code)
	}
}

// half sends the first half of the answer of next. cut: and closes the connection; else as if it
// were the whole.
func half(next http.Handler, cut bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, req *http.Request) {
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, req)
		body := whole.Body.Bytes()
		n := len(body)
		if body = body[:n/2]; !cut {
			n = len(body)
		}
		rw.Header().Set("Last-Modified", whole.Header().Get("Last-Modified"))
		rw.Header().Set("Content-Length", fmt.Sprint(n))
		rw.WriteHeader(whole.Code)
		_, _ = rw.Write(body)
		if cut {
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// TestCopyFromTroubledS3: S3 refuses the listing, then it has one trouble after the other with all
// files of an export but the first. The status names each with its remedy, the stream goes on, and
// so does the copy when S3 is well, in the next life; that each file is an internal error at first
// is no trouble.
func TestCopyFromTroubledS3(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t)
	w.exportable(240)
	folder := w.export("Orders", 7, "")
	w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + folder}
	first := filepath.Base(w.dataFiles(folder)[0])
	trouble := func(match func(*http.Request) bool, answer func(next http.Handler) http.HandlerFunc) {
		w.s3.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
				if match(req) {
					answer(next)(rw, req)
					return
				}
				next.ServeHTTP(rw, req)
			})
		})
	}
	refuse := func(status int, code string) func(http.Handler) http.HandlerFunc {
		return func(http.Handler) http.HandlerFunc { return s3Error(status, code) }
	}
	trouble(func(req *http.Request) bool { return req.URL.Query().Has("list-type") }, refuse(403, "AccessDenied"))
	r := w.start("Orders")
	shows := func(texts ...string) {
		t.Helper()
		r.until(fmt.Sprintf("the status shows %q", texts), func() bool {
			for _, text := range texts {
				if !strings.Contains(strings.Join(r.table("Orders").Reasons, " "), text) {
					return false
				}
			}
			return true
		})
	}
	shows("open export", "AccessDenied", "s3:ListBucket")
	for _, c := range []struct {
		answer func(next http.Handler) http.HandlerFunc
		why    []string
	}{
		{func(next http.Handler) http.HandlerFunc { return half(next, true) }, []string{" bytes: ", "unexpected EOF"}},
		{refuse(404, "NoSuchKey"), []string{"not exist", "lifecycle rule"}},
		{func(next http.Handler) http.HandlerFunc { return half(next, false) }, []string{"altered or cut", "copy the"}},
		{refuse(403, "AccessDenied"), []string{"AccessDenied", "s3:GetObject on the export"}},
	} {
		trouble(func(req *http.Request) bool {
			return strings.HasSuffix(req.URL.Path, ".json.gz") && !strings.HasSuffix(req.URL.Path, first)
		}, c.answer)
		shows(append(c.why, "/data/")...)
	}
	w.changeItems("Orders", 91, 30)
	r.settle()
	r.hastenUntil("the first file is copied", func() bool { c := r.table("Orders").Copy; return c != nil && c.Items > 0 })
	if ok, _ := r.p.Ready(); ok {
		t.Error("ready before the copy is complete")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.start("Orders")
	shows("AccessDenied", "/data/")
	var failed sync.Map
	trouble(func(req *http.Request) bool {
		_, before := failed.LoadOrStore(req.URL.Path, true)
		return !before
	}, refuse(500, "InternalError"))
	r.copied()
	r.settle()
	r.equal()
	if n := len(r.stored("Orders")); n < 200 {
		t.Errorf("only %d rows were compared", n)
	}
}

// finishExports lets exports be complete, or failed, when they are first asked about.
func (w *world) finishExports() {
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".DescribeExport") {
				w.tables.FinishExports()
			}
			next.ServeHTTP(rw, req)
		})
	})
}

// TestExportThatDynamoDBDoesNotMake: it is refused, has failed, or is not what was asked for. The
// status says why and what to do, the stream goes on, and the copy asks again until there is an
// export.
func TestExportThatDynamoDBDoesNotMake(t *testing.T) {
	long(t, "12 s")
	for what, c := range map[string]struct {
		spoil   func(w *world) (mend func())
		why     []string
		asked   int // exports that are made
		restart bool
	}{
		"recovery is off": {func(w *world) func() {
			pitr := func(on bool) {
				w.post("UpdateContinuousBackups", fmt.Sprintf(
					`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":%v}}`, on))
			}
			pitr(false)
			return func() { pitr(true) }
		}, []string{"PointInTimeRecoveryUnavailable", "update-continuous-backups", "backfill: scan"}, 1, false},
		"the bucket is missing": {func(w *world) func() {
			w.backfill.Bucket = "elsewhere"
			return func() {
				if err := w.buckets.Create("elsewhere"); err != nil {
					w.t.Error(err)
				}
			}
		}, []string{"S3NoSuchBucket", "create it"}, 2, false},
		"the bucket is misspelled": {func(w *world) func() {
			w.backfill.Bucket = "backup"
			return func() { w.backfill.Bucket = "backups" }
		}, []string{"S3NoSuchBucket", "check its name"}, 2, true},
		"not allowed": {func(w *world) func() {
			var allowed atomic.Bool
			w.tables.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
					if !allowed.Load() && strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".ExportTableToPointInTime") {
						rw.WriteHeader(http.StatusBadRequest)
						_, _ = io.WriteString(rw, `{"__type":"com.amazonaws#AccessDeniedException","message":"no"}`)
						return
					}
					next.ServeHTTP(rw, req)
				})
			})
			return func() { allowed.Store(true) }
		}, []string{"AccessDenied", "dynamodb:ExportTableToPointInTime"}, 1, false},
		"another table": {func(w *world) func() {
			w.createTable("Others")
			w.post("UpdateContinuousBackups",
				`{"TableName":"Others","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
			var right atomic.Bool
			w.tables.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
					if !right.Load() && strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".ExportTableToPointInTime") {
						body, _ := io.ReadAll(req.Body)
						text := strings.ReplaceAll(string(body), "table/Orders", "table/Others")
						req.Body, req.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
					}
					next.ServeHTTP(rw, req)
				})
			})
			return func() { right.Store(true) }
		}, []string{"table/Others", "name an export of this table"}, 2, false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.exportable(60)
			w.backfill = pipeline.Backfill{From: "export", Bucket: "backups"}
			w.finishExports()
			mend := c.spoil(w)
			r := w.start("Orders")
			for _, text := range c.why {
				r.until("the status says "+text, func() bool {
					return strings.Contains(strings.Join(r.table("Orders").Reasons, " "), text)
				})
			}
			w.changeItems("Orders", 92, 20)
			r.settle()
			if ok, _ := r.p.Ready(); ok {
				t.Error("ready without a copy")
			}
			mend()
			if c.restart {
				_ = r.stop()
				r = w.start("Orders")
			}
			r.copied()
			r.settle()
			r.equal()
			if n := strings.Count(w.ask("ListExports", `{}`), `"ExportArn"`); n < c.asked {
				t.Errorf("%d exports were made, want %d at least", n, c.asked)
			}
		})
	}
}
