package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/verify/distributed"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// verifying is `replicator verify --workers --for-cutover` at work.
type verifying struct {
	folder chan string // of the comparison, once workers may begin
	lines  bytes.Buffer
	found  []report.Table
	err    error
	over   chan struct{}
}

// replicate runs a daemon, which copies n items of a table and settles.
func replicate(t *testing.T, n, files int) *world {
	w := fill(t, n, "{from: scan}", func(int) bool { return false })
	w.Window = "1h" // else the log is trimmed faster than a comparison reads along
	w.Configure("{source: Orders, target: orders, backfill: {from: scan}}")
	t.Setenv("AWS_ENDPOINT_URL_S3", w.S3.URL())
	t.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	w.DynamoDB.SetExports(0, files)
	w.daemon = w.Run()
	w.until("the copy is complete", func() bool {
		s := w.daemon.Table(tableName)
		return s.Copy == nil && s.State == "running"
	})
	w.daemon.Settle()
	return w
}

// verify begins to compare, until ctx ends.
func (w *world) verify(ctx context.Context, along bool) *verifying {
	w.t.Helper()
	v := &verifying{folder: make(chan string, 1), over: make(chan struct{})}
	_, s := w.Pair(tableName)
	go func() {
		defer close(v.over)
		v.found, v.err = audit.Full(ctx, w.Config, s, audit.Options{
			Along: along, Lines: &v.lines,
			Workers: &audit.Workers{
				Folder: "s3://backups/compare?endpoint=" + w.S3.URL(), Region: "us-east-1", Poll: 50 * time.Millisecond,
			},
			Say: func(line string) {
				w.t.Log(line)
				if _, folder, ok := strings.Cut(line, "replicator-bulk verify --comparison "); ok {
					v.folder <- folder
				}
			},
		})
	}()
	return v
}

// begun returns the folder of the comparison, once workers may begin.
func (w *world) begun(v *verifying) (folder string) {
	w.t.Helper()
	w.until("workers may begin", func() bool {
		select {
		case folder = <-v.folder:
			return true
		case <-v.over:
			w.t.Fatalf("it ended: %v", v.err)
		default:
		}
		return false
	})
	return folder
}

// ended waits until the comparison has ended.
func (w *world) ended(v *verifying) []report.Table {
	w.t.Helper()
	w.While("the comparison ends", func() { <-v.over })
	if v.err != nil {
		w.t.Fatal(v.err)
	}
	return v.found
}

// cutOver cuts the table over.
func (w *world) cutOver() (cert *certificate.Certificate, err error) {
	w.t.Helper()
	clients, s := w.Pair(tableName)
	w.While("the cutover ends", func() {
		cert, err = cutover.New(w.Config, clients, s, cutover.Options{
			Tables: []string{tableName}, Quiet: time.Second, Say: w.t.Logf,
		}).Run(w.t.Context())
	})
	return cert, err
}

// compare starts a job that compares.
func (w *world) compare(folder string, args ...string) *program {
	w.t.Helper()
	return w.start(append([]string{"verify", "--comparison", folder, "--scratch", w.t.TempDir()}, args...)...)
}

// ranges returns how many ranges have findings.
func (w *world) ranges(folder string) (stored, all int) {
	w.t.Helper()
	f, err := distributed.Open(w.t.Context(), folder, "us-east-1")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	p, err := f.Plan(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	have, err := f.Stored(w.t.Context(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(have), p.Ranges()
}

// TestComparisonByWorkers: beside writers, with a job killed half-way and two beside each other,
// both sides are equal, and a cutover uses the result.
func TestComparisonByWorkers(t *testing.T) {
	const items, files = 1200, 12
	w := replicate(t, items, files)
	writing, stop := context.WithCancel(t.Context())
	var writers errgroup.Group
	writers.Go(func() error { w.write(writing, items, *copySeed); return nil })

	v := w.verify(t.Context(), true)
	folder := w.begun(v)
	if code, text := w.wait(w.compare(folder, "--dry-run")); code != 0 || !strings.Contains(text, "12 files") {
		t.Fatalf("dry run: exit code %d:\n%s", code, text)
	}
	job := w.compare(folder)
	w.until("the first job has stored a range", func() bool { n, _ := w.ranges(folder); return n > 0 })
	if err := job.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-job.over
	stored, all := w.ranges(folder)
	t.Logf("killed with %d of %d ranges", stored, all)
	beside := w.compare(folder)
	if code, text := w.wait(w.compare(folder)); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	if code, text := w.wait(beside); code != 0 {
		t.Errorf("the job beside it ends with %d:\n%s", code, text)
	}
	stop()
	_ = writers.Wait()
	found := w.ended(v)
	if report.Worst(found) != report.Equal || found[0].Items < items {
		t.Fatalf("%+v\n%s", found, &v.lines)
	}
	done := fmt.Sprintf("%d of %d ranges are", all, all)
	if code, text := w.wait(w.compare(folder)); code != 0 || !strings.Contains(text, done) {
		t.Errorf("a job behind the last: exit code %d:\n%s", code, text)
	}
	w.daemon.Settle()
	w.equal()

	if cert, err := w.cutOver(); err != nil || cert.Verify.How != certificate.HowChanged {
		t.Fatalf("%+v, %v", cert, err)
	}
}

// TestWorkersFindWhatDiffers: a missing row, a wrong cell, a row without its item and a foreign
// cell, and nothing else. The command is interrupted, and goes on.
func TestWorkersFindWhatDiffers(t *testing.T) {
	const items, files = 300, 4
	w := replicate(t, items, files)
	data, err := cloud.NewClient(t.Context(), "local", "local", option.WithEndpoint(w.Bigtable.Addr()),
		option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	apply := func(row string, change func(*cloud.Mutation)) {
		t.Helper()
		m := cloud.NewMutation()
		change(m)
		if err := data.Open("orders").Apply(t.Context(), row, m); err != nil {
			t.Fatal(err)
		}
	}
	set := func(column string) func(*cloud.Mutation) {
		return func(m *cloud.Mutation) { m.Set("d", column, cloud.Now(), []byte("planted")) }
	}
	apply("c5#o5", func(m *cloud.Mutation) { m.DeleteRow() })
	apply("c7#o7", set("name"))
	apply("c9#o9", set("foreign"))
	apply("unknown", set("name"))
	ctx, interrupt := context.WithCancel(t.Context())
	first := w.verify(ctx, false)
	folder := w.begun(first)
	interrupt()
	<-first.over
	v := w.verify(t.Context(), false)
	if again := w.begun(v); first.err == nil || again != folder {
		t.Errorf("it did not go on: %s, then %s, %v", folder, again, first.err)
	}
	code, text := w.wait(w.compare(folder))
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	found := w.ended(v)
	if report.Worst(found) != report.Different || found[0].Items != items {
		t.Errorf("%+v", found)
	}
	lines := strings.Split(strings.TrimSpace(v.lines.String()), "\n")
	for _, row := range []string{"c5#o5", "c7#o7", "c9#o9", "unknown"} {
		want := base64.StdEncoding.EncodeToString([]byte(row))
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%s is not named in\n%s", row, &v.lines)
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d differences:\n%s", len(lines), &v.lines)
	}
}
