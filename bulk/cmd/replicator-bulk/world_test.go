package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// asProgram makes the test program be replicator-bulk: nothing is linked for the tests.
const asProgram = "REPLICATOR_BULK"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// world is a table that is older than its stream, with an export of it in S3, and a daemon that
// applies the stream.
type world struct {
	*daemontest.World
	t      *testing.T
	daemon *daemontest.Daemon
	sink   *bigtable.Client
	own    *transform.Program
	export *export.Export
	order  *delegation.Order

	beating errgroup.Group
}

const tableName = "Orders"

// newWorld makes n items; Bigtable refuses the rows of some. The daemon copies nothing, and the
// test exports the table into as many files as it names, and gives the order.
func newWorld(t *testing.T, n, files int, refused func(i int) bool) *world {
	t.Helper()
	w := fill(t, n, "none", refused)
	w.daemon = w.Run()
	w.daemon.Settle()
	w.openExport(files)
	w.daemon.Settle() // every change up to the export is applied
	return w
}

// fill makes a table with n items that are older than its stream.
func fill(t *testing.T, n int, backfill string, refused func(i int) bool) *world {
	t.Helper()
	w := &world{World: daemontest.New(t, 1), t: t}
	w.Configure("{source: Orders, target: orders, backfill: " + backfill + "}")
	w.Prepare(tableName)
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	w.Fill(tableName, n, func(i int) []byte {
		value := fmt.Sprintf(`"price":{"N":"%d"}`, i)
		if refused(i) {
			value = `"` + strings.Repeat("x", 20<<10) + `":{"S":"longer than a qualifier may be"}`
		}
		return fmt.Appendf(nil, `{"pk":{"S":"c%d"},"sk":{"S":"o%d"},"name":{"S":"%d"},%s}`, i%97, i, i, value)
	})
	if err := w.Buckets.Create("backups"); err != nil {
		t.Fatal(err)
	}
	w.sink = w.Sink(w.Clients())
	w.own = w.Catalog(w.Clients()).Tables[0].Program
	return w
}

func (w *world) openExport(files int) {
	w.t.Helper()
	w.DynamoDB.SetExports(0, files)
	w.Clock.Advance(10 * time.Minute)
	reply := w.Call("ExportTableToPointInTime",
		`{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Orders","S3Bucket":"backups"}`)
	var asked struct{ ExportDescription struct{ ExportArn string } }
	if err := json.Unmarshal(reply, &asked); err != nil {
		w.t.Fatal(err)
	}
	w.DynamoDB.FinishExports()
	arn := asked.ExportDescription.ExportArn
	o := source.Options{Region: "us-east-1", S3Endpoint: w.S3.URL()}
	src, err := source.Open(w.t.Context(), o, zap.NewNop(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(src.Close)
	w.export, err = export.Open(w.t.Context(), "s3://backups/AWSDynamoDB/"+arn[strings.LastIndexByte(arn, '/')+1:],
		export.Want{Source: src, Known: &export.Known{}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// open stores an order, as the owner of the table does, and its beats.
func (w *world) open(id string) {
	w.t.Helper()
	mapping, err := delegation.MappingOf(w.own)
	if err != nil {
		w.t.Fatal(err)
	}
	state, err := w.sink.LoadState(w.t.Context(), "shop", tableName)
	if err != nil {
		w.t.Fatal(err)
	}
	w.order = &delegation.Order{
		Revision: delegation.NextRevision(w.order, 0), ID: id, Copy: "c", Life: state.Life,
		Pipeline: "shop", Table: tableName, TableID: w.export.TableID, Target: "orders", Tombstones: w.sink.Tombstones(),
		Export: delegation.Export{
			URL: w.export.URL, Digest: w.export.Digest(), Files: len(w.export.Files), Time: w.export.Time,
			Items: w.export.Items,
		},
		Version: protocol.VersionOfExport(w.export.Time), First: true,
		Mappings: []delegation.Mapping{mapping},
		Opened:   change.MillisOf(w.Clock.Now()),
	}
	w.swap(nil, w.order)
	beating, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.beat()
	w.beating.Go(func() error {
		for failure.Pause(beating, 100*time.Millisecond) == nil {
			w.beat()
		}
		return nil
	})
	w.t.Cleanup(func() { stop(); _ = w.beating.Wait() })
}

func (w *world) beat() {
	b := delegation.Beat{Order: w.order.ID, Date: change.MillisOf(w.Clock.Now())}
	if _, err := w.sink.StoreBeat(context.WithoutCancel(w.t.Context()), "shop", tableName, b, nil); err != nil {
		w.t.Error(err)
	}
}

// swap replaces the order.
func (w *world) swap(have, next *delegation.Order) {
	w.t.Helper()
	if done, err := w.sink.SwapOrder(w.t.Context(), "shop", tableName, have, next); err != nil || !done {
		w.t.Fatalf("swap order: %t, %v", done, err)
	}
}

// marks returns the marks of the order.
func (w *world) marks() map[int]delegation.FileMark {
	w.t.Helper()
	all := map[int]delegation.FileMark{}
	for row := range delegation.Rows(w.order.Export.Files) {
		err := w.sink.LoadFileMarks(w.t.Context(), w.order, row, nil, func(n int, m *delegation.FileMark) error {
			all[n] = *m
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// program is a running replicator-bulk.
type program struct {
	*exec.Cmd
	out  bytes.Buffer
	over chan error
}

// launch starts a job that copies.
func (w *world) launch(args ...string) *program {
	w.t.Helper()
	return w.start(append([]string{
		"copy", "--pipeline", "shop", "--table", tableName, "--bigtable", "local/local",
	}, args...)...)
}

// start starts replicator-bulk on the servers of the test.
func (w *world) start(args ...string) *program {
	w.t.Helper()
	p := &program{over: make(chan error, 1)}
	p.Cmd = exec.CommandContext(w.t.Context(), os.Args[0], append(args,
		"--bigtable-endpoint", w.Bigtable.Addr(), "--s3-endpoint", w.S3.URL(), "--aws-region", "us-east-1")...)
	p.Env = append(os.Environ(), asProgram+"=1", "AWS_ACCESS_KEY_ID=sandbox", "AWS_SECRET_ACCESS_KEY=sandbox")
	p.Stdout, p.Stderr = &p.out, &p.out
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { p.over <- p.Wait() }()
	w.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// wait returns the exit code of a program, and what it printed.
func (w *world) wait(p *program) (code int, text string) {
	w.t.Helper()
	var err error
	w.While("the job ends", func() { err = <-p.over })
	if p.ProcessState == nil {
		w.t.Fatal(err)
	}
	return p.ProcessState.ExitCode(), p.out.String()
}

// equal compares every cell of the target with the table, but for items that the mapping refuses.
func (w *world) equal() {
	w.t.Helper()
	items := func(_ context.Context, f func(change.Image) error) error {
		var d change.Decoder
		for _, item := range w.Items(tableName) {
			d.Reset()
			image, err := d.Image(item)
			if err != nil {
				return err
			}
			if strings.Contains(string(item), "longer than a qualifier") {
				continue
			}
			if err := f(image); err != nil {
				return err
			}
		}
		return nil
	}
	rows := func(ctx context.Context, f func(*bigtable.Row) error) error {
		return w.sink.Rows(ctx, "orders", "", "", verify.Views(w.own), f)
	}
	r, err := oracle.Compare(w.t.Context(), oracle.Options{ShowValues: true},
		[]oracle.Source{{Program: w.own, Schema: w.own.Table().Schema, Items: items}}, rows)
	if err != nil {
		w.t.Fatal(err)
	}
	if !r.Equal() || r.Cells == 0 {
		w.t.Errorf("%d items, %d differences: %+v", r.Items, r.Count, r.Differences[:min(len(r.Differences), 5)])
	}
}
