package archiving

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	healingTable = "Sessions"
	tableARN     = "arn:aws:dynamodb:eu-west-1:1:table/Sessions"
	begin        = change.Millis(494_000 * 3600_000)
	minute       = change.Millis(60_000)
	hour         = 60 * minute
)

// healingWorld is the archive of a table with gaps, and exports in a folder.
type healingWorld struct {
	unasked bool // DynamoDB cannot be asked about exports
	t       *testing.T
	log     *queue.Log
	bucket  bucket.Bucket
	dir     string // of exports
	gaps    []Gap
	letters int
	epoch   uint64
	chunk   int                  // deletions that are held at once; 0: the usual number
	closed  []*checkpoint.Healed // what was appended to the table's log
	refuse  int                  // how often that fails before it succeeds
	calls   atomic.Int64         // of Event
	crashAt int64                // the call of Event that ends the life; 0: none
}

func newHealingWorld(t *testing.T) *healingWorld {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{
		Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 2 << 20, LettersMaxBytes: 1 << 20, ArchiveMaxBytes: 4 << 20,
		AckTimeout: 10 * time.Second, IdleCheck: 50 * time.Millisecond,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	w := &healingWorld{t: t, dir: t.TempDir(), gaps: []Gap{gapOf("a", begin+hour, begin+3*hour)}}
	if w.log, err = q.CreateLog(t.Context(), healingTable, "token"); err != nil {
		t.Fatal(err)
	}
	if w.bucket, err = bucket.Open(t.Context(), "file://"+t.TempDir(), bucket.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.bucket.Close() })
	return w
}

func gapOf(id string, since, until change.Millis) Gap {
	return Gap{ID: id, Since: since, Until: until, Accepted: true, Differs: true}
}

// healingLife is an owner of the table at work.
type healingLife struct {
	*Healer
	w     *healingWorld
	ctx   context.Context
	crash func()
	done  chan struct{}
}

// start starts an owner. It has what the stream gave until ten hours after begin.
func (w *healingWorld) start() *healingLife {
	w.t.Helper()
	w.epoch++
	a := New(Options{
		Place: Place{
			Objects: w.bucket, Form: object.Options{Format: object.Parquet, Pipeline: "shop"}, Once: &Once{},
			Scratch: w.t.TempDir(), Roll: time.Millisecond, CutAt: 2000,
		},
		Pipeline: "shop", Table: healingTable, Owner: fmt.Sprint("owner ", w.epoch), Life: 1,
		Epoch: w.epoch, Open: w.log.Archive,
		Now: func() change.Millis { return begin + 10*hour }, Retry: 10 * time.Millisecond, FromStart: true,
		Facts:   func(layout.Hour) Facts { return Facts{Incomplete: []string{"a"}} },
		Metrics: NewMetrics(nil), Logger: zap.NewNop(),
		Halt:  func(context.Context, string, string, string) error { return nil },
		Clear: func(context.Context, string) error { return nil },
	})
	a.Passed(begin + 10*hour)
	ctx, cancel := context.WithCancel(w.t.Context())
	l := &healingLife{w: w, ctx: ctx, crash: cancel, done: make(chan struct{})}
	l.Healer = NewHealer(HealOptions{
		Archive: a, TableARN: tableARN, TTLAttr: "expires", Letters: func() int { return w.letters },
		Gaps:  func() []Gap { return w.gaps },
		Open:  func(ctx context.Context, url string) (*export.Export, error) { return w.open(ctx, url) },
		Event: l.event, Append: w.append, Now: func() change.Millis { return begin + 10*hour }, Logger: zap.NewNop(),
	})
	if w.chunk > 0 {
		l.chunk = w.chunk
	}
	go func() {
		defer close(l.done)
		_ = a.Run(ctx)
	}()
	w.t.Cleanup(l.end)
	return l
}

// end ends the owner where it is.
func (l *healingLife) end() {
	l.crash()
	<-l.done
}

func (w *healingWorld) open(ctx context.Context, url string) (*export.Export, error) {
	e, err := export.Open(ctx, url, export.Want{TableID: "table-1"})
	if err == nil && !w.unasked {
		e.Wholeness, e.Unasked = export.Whole, ""
	}
	return e, err
}

func (w *healingWorld) append(ctx context.Context, body any) error {
	if w.refuse > 0 {
		w.refuse--
		return errors.New("the log is away")
	}
	w.closed = append(w.closed, body.(*checkpoint.Healed))
	return ctx.Err()
}

// event is a mapping that archives all items but those with the key skip.
func (l *healingLife) event(_ *change.Decoder, c *change.Change) (*transform.Event, error) {
	if l.w.calls.Add(1) == l.w.crashAt {
		l.crash()
	}
	if bytes.Contains(c.Keys, []byte("skip")) {
		return nil, nil
	}
	var item struct{ Expires struct{ N string } }
	if c.Old != nil {
		if err := json.Unmarshal(c.Old, &item); err != nil {
			return nil, err
		}
	}
	_, label, _ := strings.Cut(c.Feed.Stream, "/stream/")
	return &transform.Event{
		Class: transform.ClassTTL, Source: tableARN, Table: healingTable, Subject: string(c.Keys), Stream: label,
		Shard: c.Feed.Shard, Sequence: c.SequenceNumber, Version: c.Version, Created: c.Created, Item: c.Old,
		Expiry: item.Expires.N,
	}, nil
}

// heal heals gaps from exports.
func (l *healingLife) heal(gaps []string, urls ...string) (*request.Outcome, error) {
	return l.Heal(l.ctx, &request.HealOrder{Gaps: gaps, Exports: urls})
}

// given stores what the stream gave.
func (l *healingLife) given(class transform.EventClass, key string, seq int, created change.Millis) {
	l.w.t.Helper()
	rec := ledger.Record{Event: &transform.Event{
		Class: class, Source: tableARN, Table: healingTable, Subject: keyOf(key), Stream: "label", Shard: "shard-1",
		Sequence: change.SequenceNumber(fmt.Sprint(1000 + seq)), Created: created, Item: []byte(`{"v":{"S":"x"}}`),
	}}
	for {
		_, err := l.Archive.Store(l.ctx, []ledger.Record{rec})
		if err == nil {
			return
		}
		if !errors.Is(err, archive.ErrAway) {
			l.w.t.Fatal(err)
		}
	}
}

func keyOf(key string) string { return fmt.Sprintf(`{"pk":{"S":"%s"}}`, key) }

// until waits for something.
func (w *healingWorld) until(what string, ok func() bool) {
	w.t.Helper()
	last, deadline := uint64(0), time.Now().Add(2*time.Minute)
	for !ok() {
		s, err := w.state()
		if err == nil && s.Seq != last {
			last, deadline = s.Seq, time.Now().Add(2*time.Minute)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not seen: %s; the ledger: %+v, %v", what, s, err)
		}
		_ = failure.Pause(w.t.Context(), 5*time.Millisecond)
	}
}

// archived returns the events of all objects by class and key, once everything is in objects that a
// manifest names.
func (w *healingWorld) archived() map[string]int {
	w.t.Helper()
	w.until("everything is in objects", func() bool {
		s, err := w.state()
		return err == nil && len(s.Parts)+len(s.Intents) == 0
	})
	all := map[string]int{}
	for x, err := range w.bucket.List(w.t.Context(), layout.Table(healingTable)) {
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := w.bucket.Open(w.t.Context(), x.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for e, err := range object.Read(r, r.Size()) {
			if err != nil {
				w.t.Fatal(err)
			}
			all[string(e.Class)+" "+e.Subject]++
		}
		_ = r.Close()
	}
	return all
}

func (w *healingWorld) state() (*ledger.State, error) {
	j, err := w.log.Archive(w.t.Context())
	if err != nil {
		return nil, err
	}
	return Fold(w.t.Context(), j)
}

// verified lets the archive verify itself: nothing may be different.
func (w *healingWorld) verified() {
	w.t.Helper()
	rep, err := manifest.Verify(w.t.Context(), w.bucket, healingTable,
		manifest.Options{Depth: manifest.Full, Read: healingContent})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range rep.Findings {
		if f.Grade == manifest.Different {
			w.t.Errorf("archive verify: %s: %s", f.Kind, f.Text)
		}
	}
}

func healingContent(_ context.Context, r io.ReaderAt, size int64, _ bool) (*manifest.Content, error) {
	foot, problems, err := object.Verify(r, size)
	if err == nil && len(problems) > 0 {
		err = errors.New(strings.Join(problems, "; "))
	}
	if err != nil {
		return nil, err
	}
	return &manifest.Content{Part: foot.Part, Coverage: foot.Coverage, Events: foot.Events, Digest: foot.Digest}, nil
}

// line is a line of an incremental export: of an item that expires, with an image before and after
// or without.
func line(key string, at, expires change.Millis, before, after bool) string {
	s := fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":%s`, int64(at)*1000+400_000, keyOf(key))
	image := fmt.Sprintf(`{"pk":{"S":"%s"},"expires":{"N":"%d"}}`, key, expires/1000)
	if before {
		s += `,"OldImage":` + image
	}
	if after {
		s += `,"NewImage":` + image
	}
	return s + "}"
}

// export writes an incremental export and returns its URL; edit may change its summary.
func (w *healingWorld) export(id string, from, to change.Millis, edit func(map[string]any), files ...[]string) string {
	w.t.Helper()
	iso := func(t change.Millis) string { return t.Time().UTC().Format(time.RFC3339) }
	items := 0
	for _, f := range files {
		items += len(f)
	}
	summary := map[string]any{
		"version": "2023-08-01", "exportArn": tableARN + "/export/" + id, "tableArn": tableARN, "tableId": "table-1",
		"exportFromTime": iso(from), "exportToTime": iso(to), "exportType": export.Incremental, "billedSizeBytes": 1,
		"outputView": "NEW_AND_OLD_IMAGES", "itemCount": items, "outputFormat": "DYNAMODB_JSON",
		"manifestFilesS3Key": "AWSDynamoDB/" + id + "/manifest-files.json",
	}
	if edit != nil {
		edit(summary)
	}
	var list bytes.Buffer
	for i, lines := range files {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, strings.Join(lines, "\n")+"\n")
		_ = z.Close()
		sum := md5.Sum(packed.Bytes())
		key := fmt.Sprintf("AWSDynamoDB/data/%s-%d.json.gz", id, i)
		if summary["exportType"] == export.Full {
			key = fmt.Sprintf("AWSDynamoDB/%s/data/%d.json.gz", id, i)
		}
		w.put(key, packed.Bytes())
		_ = json.NewEncoder(&list).Encode(map[string]any{
			"itemCount": len(lines), "md5Checksum": base64.StdEncoding.EncodeToString(sum[:]), "etag": "e", "dataFileS3Key": key,
		})
	}
	text, err := json.Marshal(summary)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"manifest-summary": text, "manifest-files": list.Bytes()} {
		sum := md5.Sum(text)
		w.put("AWSDynamoDB/"+id+"/"+name+".json", text)
		w.put("AWSDynamoDB/"+id+"/"+name+".md5", []byte(base64.StdEncoding.EncodeToString(sum[:])))
	}
	return filepath.Join(w.dir, "AWSDynamoDB", id)
}

func (w *healingWorld) put(key string, text []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, key)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
