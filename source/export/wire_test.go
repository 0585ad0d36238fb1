package export_test

import (
	gocmp "cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// world is a sandbox with a table, point-in-time recovery, a bucket and a source that reads both.
type world struct {
	*sandbox.World
	t     *testing.T
	clock *clock.Clock
	src   *source.Source
	info  source.TableInfo
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	w := &world{t: t, clock: clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	w.World = sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		Seed: 1, Clock: w.clock, NoBigtable: true, NoNATS: true,
	}})
	w.CreateTable("Orders")
	if err := w.Buckets.Create("backups"); err != nil {
		t.Fatal(err)
	}
	var err error
	o := source.Options{Region: "us-east-1", Endpoint: w.Endpoint(), S3Endpoint: w.S3.URL(), DateTrust: -1}
	if w.src, err = source.Open(t.Context(), o, zap.NewNop(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.src.Close)
	if w.info, err = w.src.Table(t.Context(), "Orders"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) recovery() {
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
}

// export asks for an export and waits for its end.
func (w *world) export(r source.ExportRequest) source.ExportStatus {
	w.t.Helper()
	r.TableARN, r.Bucket, r.Prefix = w.info.ARN, "backups", gocmp.Or(r.Prefix, "daily")
	arn, err := w.src.StartExport(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("%v: %s", err, source.Hint(err))
	}
	var status source.ExportStatus
	w.Watch.Until(w.t, "the export has ended", func() bool {
		if status, err = w.src.ExportStatus(w.t.Context(), arn); err != nil {
			w.t.Fatal(err)
		}
		w.clock.Advance(time.Second)
		return status.Status != source.ExportInProgress
	})
	return status
}

// open opens an export from S3.
func (w *world) open(url string) *export.Export {
	w.t.Helper()
	want := export.Want{Source: w.src, TableID: w.info.ID, TableARN: w.info.ARN, Scratch: w.t.TempDir()}
	e, err := export.Open(w.t.Context(), url, want)
	if err != nil {
		w.t.Fatalf("%v: %s", err, source.Hint(err))
	}
	return e
}

// all reads all files of an export.
func all(t *testing.T, e *export.Export) (lines []export.Line) {
	t.Helper()
	for i := range e.Files {
		err := e.ReadFile(t.Context(), i, 0, func(l export.Line) error {
			lines = append(lines, export.Line{
				Item: []byte(string(l.Item)), Keys: []byte(string(l.Keys)), Old: []byte(string(l.Old)),
				New: []byte(string(l.New)), Written: l.Written,
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// TestAskedForExportHasTheItemsOfTheScan: started, described, listed, and read from S3 as it was at
// its time, item by item as a scan read them then.
func TestAskedForExportHasTheItemsOfTheScan(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	for i := range 300 {
		w.Put("Orders", fmt.Sprint(i), `"é\`, fmt.Sprintf(`"n":{"N":"%d.50"},"b":{"B":"AQI="},"l":{"L":[{"NULL":true}]}`, i))
	}
	want := map[string]bool{}
	for page, err := range w.src.Scan(t.Context(), "Orders", 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			want[string(item)] = true
		}
	}
	w.clock.Advance(10 * time.Minute)
	at := w.clock.Now().Add(-6 * time.Minute)
	w.Delete("Orders", "7", `"é\`)
	p, err := w.src.PointInTime(t.Context(), "Orders")
	if err != nil || !p.Enabled || p.Earliest.After(at) || p.Latest.Before(at) {
		t.Fatalf("%+v, %v", p, err)
	}
	status := w.export(source.ExportRequest{Time: at, ClientToken: "token"})
	if status.Failure() != nil || status.Status != source.ExportCompleted || status.Items != 300 || status.URL == "" {
		t.Fatalf("%+v", status)
	}
	again, err := w.src.StartExport(t.Context(), source.ExportRequest{
		TableARN: w.info.ARN, Bucket: "backups", Prefix: "daily", Time: at, ClientToken: "token",
	})
	if err != nil || again != status.ARN {
		t.Errorf("the same token starts %s, not %s: %v", again, status.ARN, err)
	}
	list, err := w.src.ListExports(t.Context(), w.info.ARN)
	if err != nil || len(list) != 1 || list[0].ARN != status.ARN || list[0].Status != source.ExportCompleted {
		t.Errorf("%+v, %v", list, err)
	}
	for _, url := range []string{status.URL, "s3://backups/daily", "s3://backups/daily/"} {
		e := w.open(url)
		if e.Kind != export.Full || e.Items != 300 || e.Table != "Orders" || e.Time.Time().Unix() != at.Unix() {
			t.Fatalf("%s: %+v", url, e)
		}
		if url != status.URL {
			continue
		}
		for _, line := range all(t, e) {
			if !want[string(line.Item)] {
				t.Fatalf("the scan had no %s", line.Item)
			}
			delete(want, string(line.Item))
		}
		if len(want) != 0 {
			t.Errorf("the export lacks %d items", len(want))
		}
	}
}

// TestIncrementalExportOnTheWire: an insert, a change and a delete in the window, with both images.
func TestIncrementalExportOnTheWire(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	w.Put("Orders", "changed", "x", `"v":{"N":"1"}`)
	w.Put("Orders", "deleted", "x", "")
	w.clock.Advance(time.Minute)
	from := w.clock.Now()
	w.Put("Orders", "new", "x", "")
	w.Put("Orders", "changed", "x", `"v":{"N":"2"}`)
	w.Delete("Orders", "deleted", "x")
	w.clock.Advance(20 * time.Minute)
	to := w.clock.Now()
	w.Put("Orders", "later", "x", "")
	w.clock.Advance(20 * time.Minute)
	e := w.open(w.export(source.ExportRequest{From: from, To: to}).URL)
	if e.Kind != export.Incremental || e.From.Time().Unix() != from.Unix() || e.To.Time().Unix() != to.Unix() {
		t.Errorf("%+v", e)
	}
	got := map[string]string{}
	for _, line := range all(t, e) {
		if line.Written < from.UnixMicro() || line.Written >= to.UnixMicro() {
			t.Errorf("%s was written at %d", line.Keys, line.Written)
		}
		kind := ""
		if len(line.Old) > 0 {
			kind += "old"
		}
		if len(line.New) > 0 {
			kind += "new"
		}
		got[string(line.Keys)] = kind
	}
	want := map[string]string{
		`{"pk":{"S":"new"},"sk":{"S":"x"}}`:     "new",
		`{"pk":{"S":"changed"},"sk":{"S":"x"}}`: "oldnew",
		`{"pk":{"S":"deleted"},"sk":{"S":"x"}}`: "old",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// filtered asks for an export with a filter and returns its URL and its ARN.
func (w *world) filtered(spec, more string) (url, arn string) {
	w.t.Helper()
	reply := w.Call("ExportTableToPointInTime", fmt.Sprintf(
		`{"TableArn":%q,"S3Bucket":"backups","S3Prefix":"daily"%s,"FilterSpecification":%s}`, w.info.ARN, more, spec))
	var out struct{ ExportDescription struct{ ExportArn string } }
	if err := json.Unmarshal(reply, &out); err != nil {
		w.t.Fatal(err)
	}
	arn = out.ExportDescription.ExportArn
	w.Watch.Until(w.t, "the export has ended", func() bool {
		st, err := w.src.ExportStatus(w.t.Context(), arn)
		if err != nil {
			w.t.Fatal(err)
		}
		url = st.URL
		w.clock.Advance(time.Second)
		return st.Status != source.ExportInProgress
	})
	return url, arn
}

// TestFilteredExportsAreNotOpened: full or incremental, from the bucket or from a folder with its
// copy, whichever expression filters it.
func TestFilteredExportsAreNotOpened(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	from := w.clock.Now()
	w.Put("Orders", "a", "x", `"n":{"N":"1"}`)
	w.Put("Orders", "b", "x", `"n":{"N":"2"}`)
	w.clock.Advance(20 * time.Minute)
	window := fmt.Sprintf(`,"ExportType":"INCREMENTAL_EXPORT","IncrementalExportSpecification":{"ExportFromTime":%d}`,
		from.Unix()+1)
	for name, spec := range map[string]string{
		"FilterExpression":       `{"FilterExpression":"n = :n","ExpressionAttributeValues":{":n":{"N":"1"}}}`,
		"ProjectionExpression":   `{"ProjectionExpression":"pk, sk"}`,
		"KeyConditionExpression": `{"KeyConditionExpression":"pk = :k","ExpressionAttributeValues":{":k":{"S":"a"}}}`,
	} {
		for _, more := range []string{"", window} {
			url, _ := w.filtered(spec, more)
			folder := w.Buckets.Dir("backups") + "/" + strings.TrimPrefix(url, "s3://backups/")
			for _, at := range []string{url, folder} {
				e, err := export.Open(t.Context(), at, export.Want{Source: w.src, TableID: w.info.ID})
				if e != nil || source.Classify(err) != failure.Rejected || !strings.Contains(err.Error(), name) ||
					!strings.Contains(source.Hint(err), "without FilterSpecification") {
					t.Errorf("%s of %s: %+v, %v: %s", at, spec, e, err, source.Hint(err))
				}
				if strings.Contains(fmt.Sprint(err), ":n") || strings.Contains(fmt.Sprint(err), "pk =") {
					t.Errorf("the reason shows the expression: %v", err)
				}
			}
		}
	}
}

// TestExportThatCannotBeAskedAbout: one denial decides nothing; two make the export unconfirmed.
// One that is listed is found sooner or later, and a throttled call says nothing.
func TestExportThatCannotBeAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	w.Put("Orders", "a", "x", "")
	w.clock.Advance(10 * time.Minute)
	url := w.export(source.ExportRequest{}).URL
	const notFound = `{"__type":"com.amazonaws.dynamodb.v20120810#ExportNotFoundException","message":"no"}`
	// Beside a virtual clock the SDK takes a denial for a signature with a wrong time, and tries
	// once more.
	const denied = `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`
	var mu sync.Mutex
	replies, unlisted := []string(nil), false
	w.DynamoDB.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			reply := ""
			switch target := r.Header.Get("X-Amz-Target"); {
			case strings.HasSuffix(target, ".ListExports") && unlisted:
				rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
				_, _ = rw.Write([]byte(`{"ExportSummaries":[]}`))
				return
			case strings.HasSuffix(target, ".DescribeExport") && len(replies) > 0:
				reply, replies = replies[0], replies[1:]
			}
			if reply == "" {
				next.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = rw.Write([]byte(reply))
		})
	})
	for name, c := range map[string]struct {
		replies  []string
		unlisted bool
		want     export.Wholeness
		class    failure.Class
	}{
		"asked":                        {nil, false, export.Whole, failure.None},
		"denied once":                  {[]string{denied, denied}, false, export.Whole, failure.None},
		"denied twice":                 {[]string{denied, denied, denied, denied}, false, export.Unconfirmed, failure.None},
		"not found, and listed":        {[]string{notFound}, false, "", failure.Transient},
		"not found once, not listed":   {[]string{notFound}, true, export.Whole, failure.None},
		"not found, and not listed":    {[]string{notFound, notFound}, true, export.Unconfirmed, failure.None},
		"not found, and denied behind": {[]string{notFound, denied, denied}, true, export.Unconfirmed, failure.None},
	} {
		mu.Lock()
		replies, unlisted = c.replies, c.unlisted
		mu.Unlock()
		e, err := export.Open(t.Context(), url, export.Want{Source: w.src, TableID: w.info.ID})
		if c.class != failure.None {
			if source.Classify(err) != c.class {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
			continue
		}
		if err != nil || e.Wholeness != c.want || (e.Unasked == "") != (c.want == export.Whole) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestDamagedListingIsNoListing: an object without a time, a listing that is cut off, and a page of
// a proxy are asked for again, and are Transient if they stay so; none of them means that there is
// no export, or ends the process.
func TestDamagedListingIsNoListing(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	w.Put("Orders", "a", "x", "")
	w.clock.Advance(10 * time.Minute)
	url := w.export(source.ExportRequest{}).URL
	const head = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`
	body, left := "", 0
	var mu sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		damaged := r.URL.Query().Has("list-type") && left != 0
		if damaged {
			left--
		}
		mu.Unlock()
		if damaged {
			rw.Header().Set("Content-Type", "application/xml")
			_, _ = rw.Write([]byte(body))
			return
		}
		target, err := http.NewRequestWithContext(r.Context(), r.Method, w.S3.URL()+r.URL.RequestURI(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		reply, err := http.DefaultClient.Do(target)
		if err != nil {
			t.Error(err)
			return
		}
		defer reply.Body.Close()
		for name := range reply.Header {
			rw.Header().Set(name, reply.Header.Get(name))
		}
		rw.WriteHeader(reply.StatusCode)
		_, _ = io.Copy(rw, reply.Body)
	}))
	defer proxy.Close()
	o := source.Options{Region: "us-east-1", Endpoint: w.Endpoint(), S3Endpoint: proxy.URL, DateTrust: -1, Attempts: 2}
	src, err := source.Open(t.Context(), o, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for what, damaged := range map[string]string{
		"no time": head + `<Name>backups</Name><IsTruncated>false</IsTruncated><Contents><Key>daily/x</Key><Size>1</Size>` +
			`</Contents></ListBucketResult>`,
		"cut off": head + `<Name>backups</Name><IsTruncated>true</IsTruncated></ListBucketResult>`,
		"empty":   head + `</ListBucketResult>`,
		"page":    `<html><body>Please log in</body></html>`,
	} {
		for _, times := range []int{1, -1} {
			mu.Lock()
			body, left = damaged, times
			mu.Unlock()
			e, err := export.Open(t.Context(), url, export.Want{Source: src, TableID: w.info.ID})
			if times > 0 && (err != nil || e.Items != 1) || times < 0 && source.Classify(err) != failure.Transient {
				t.Errorf("%s, %d times: %+v, %v", what, times, e, err)
			}
		}
	}
}

// TestRefusedExportsSayWhatToDo: point-in-time recovery is off, the bucket is missing, nothing is
// known of the export.
func TestRefusedExportsSayWhatToDo(t *testing.T) {
	w := newWorld(t)
	if p, err := w.src.PointInTime(t.Context(), "Orders"); err != nil || p.Enabled {
		t.Errorf("%+v, %v", p, err)
	}
	check := func(err error, class failure.Class, hint string) {
		t.Helper()
		if source.Classify(err) != class || !strings.Contains(source.Hint(err), hint) {
			t.Errorf("%v: %v, hint %q", source.Classify(err), err, source.Hint(err))
		}
	}
	r := source.ExportRequest{TableARN: w.info.ARN, Bucket: "none"}
	_, err := w.src.StartExport(t.Context(), r)
	check(err, failure.Denied, "update-continuous-backups")
	w.recovery()
	if arn, err := w.src.StartExport(t.Context(), r); err != nil {
		check(err, failure.Missing, "bucket does not exist")
	} else {
		status := source.ExportStatus{Status: source.ExportInProgress}
		w.Watch.Until(t, "the export has failed", func() bool {
			w.clock.Advance(time.Second)
			status, err = w.src.ExportStatus(t.Context(), arn)
			return err != nil || status.Status != source.ExportInProgress
		})
		check(status.Failure(), failure.Missing, "bucket does not exist")
	}
	_, err = w.src.ExportStatus(t.Context(), w.info.ARN+"/export/01234567890123-a1b2c3d4")
	check(err, failure.Gone, "90 days")
	for url, class := range map[string]failure.Class{
		"s3://backups/none": failure.Missing, "s3://no-such-bucket/x": failure.Missing,
		"s3://backups/x/" + "manifest-summary.json": failure.Missing,
	} {
		_, err := export.Open(t.Context(), url, export.Want{Source: w.src})
		check(err, class, "")
		if source.Hint(err) == "" {
			t.Errorf("%s: nothing to do about %v", url, err)
		}
	}
}

// TestFilesOfABucketThatChange: one that is cut or lost after the export was opened gives no item.
func TestFilesOfABucketThatChange(t *testing.T) {
	w := newWorld(t)
	w.recovery()
	for i := range 100 {
		w.Put("Orders", fmt.Sprint(i), "x", "")
	}
	w.clock.Advance(10 * time.Minute)
	e := w.open(w.export(source.ExportRequest{}).URL)
	i := 0
	for e.Files[i].Items == 0 {
		i++
	}
	var path string
	err := filepath.WalkDir(w.Buckets.Dir("backups"), func(p string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(p, e.Files[i].Key) {
			path = p
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("no %s on disk: %v", e.Files[i].Key, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	none := func(l export.Line) error { return errors.New("a line was handed out") }
	if err := os.WriteFile(path, whole[:len(whole)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.ReadFile(t.Context(), i, 0, none); source.Classify(err) != failure.Fatal {
		t.Errorf("cut: %v: %v", source.Classify(err), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := e.ReadFile(t.Context(), i, 0, none); source.Classify(err) != failure.Missing {
		t.Errorf("lost: %v: %v", source.Classify(err), err)
	}
}
