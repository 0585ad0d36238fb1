package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// stage is both sides of a target with one table. The test owns the table's log.
type stage struct {
	*testing.T
	world   *sandbox.World
	cfg     config.Config
	pair    *pair.Pair
	log     *queue.Writer
	dir     string
	records int
}

const stream = "arn:aws:dynamodb:us-east-1:1:table/Orders/stream/1"

func newStage(t *testing.T) *stage {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "BIGTABLE_EMULATOR_HOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &stage{T: t, world: sandbox.NewWorld(t, sandbox.WorldOptions{}), cfg: config.Default(), dir: t.TempDir()}
	s.world.CreateTable("Orders")
	c := &s.cfg
	c.Pipeline, c.Source.Region, c.Source.Endpoint = "shop", "us-east-1", s.world.Endpoint()
	c.Bigtable.Project, c.Bigtable.Instance, c.Bigtable.Endpoint = "local", "local", s.world.Bigtable.Addr()
	c.Queue.Dir, c.Queue.URL, c.Queue.ReplayWindow = "", s.world.NATS.URL(), 0
	c.Tables = []config.Table{{Source: "Orders", Target: "orders", OnTTLExpiry: "delete"}}
	s.openPair()
	s.openLog()
	return s
}

// openPair opens the pair, as after a first start of the replicator.
func (s *stage) openPair() {
	s.Helper()
	ctx := s.Context()
	clients := clients.ForCommand(&s.cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
	s.Cleanup(func() { _ = clients.Close() })
	src, err := clients.Source(ctx)
	s.must(err)
	tables, err := catalog.Load(ctx, &s.cfg, src)
	s.must(err)
	sink, err := clients.Bigtable(ctx)
	s.must(err)
	_, err = sink.Ensure(ctx, tables.BigtableTables())
	s.must(err)
	s.must(sink.CreateState(ctx, &bigtable.State{Identity: tables.Tables[0].Identity("shop", sink), Life: 1}))
	s.pair, err = pair.Open(ctx, &s.cfg, clients, tables, "Orders")
	s.must(err)
}

// openLog makes the table's log and claims it.
func (s *stage) openLog() {
	s.Helper()
	q, err := queue.Open(s.Context(), clients.QueueOptions(&s.cfg), zap.NewNop(), prometheus.NewRegistry())
	s.must(err)
	s.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(s.Context(), "Orders", "t0ken")
	s.must(err)
	s.log, err = log.Claim(s.Context(), queue.ClaimOptions{Owner: "a", Life: 1})
	s.must(err)
	s.append(&checkpoint.Start{Stream: stream, Date: s.pair.Now(), Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}})
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) append(body any) {
	s.Helper()
	_, err := s.log.Append(s.Context(), body, nil)
	s.must(err)
}

// write appends a frame with a change of each item, whose sort keys are given.
func (s *stage) write(sorts ...string) {
	s.Helper()
	second := s.pair.Now() / 1000
	var records []string
	for _, sk := range sorts {
		s.records++
		key := fmt.Sprintf(`{"pk":{"S":"p"},"sk":{"S":%q}}`, sk)
		records = append(records, fmt.Sprintf(`{"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s,"NewImage":%s,`+
			`"SequenceNumber":"1%020d","SizeBytes":9},"eventID":"e","eventName":"MODIFY"}`, second, key, key, s.records))
	}
	recs, _, err := change.ScanPage([]byte(`{"Records":[`+strings.Join(records, ",")+`]}`), nil)
	s.must(err)
	sh := s.log.State().Shards["shard-1"]
	p := &change.Page{Feed: change.Feed{Stream: stream, Shard: "shard-1"}, From: sh.Pos, ClockFrom: sh.Clock,
		Date: second * 1000, Records: recs}
	clock := change.Clock(sh.Clock)
	for i := range recs {
		recs[i].Version = clock.Next(recs[i].Created)
		p.To, p.Clock = change.Position{After: change.SequenceNumber(recs[i].SequenceNumber)}, recs[i].Version
	}
	frames, err := frame.Pack([]*change.Page{p}, 1<<20)
	s.must(err)
	for _, f := range frames {
		_, err := s.log.Append(s.Context(), f.Body, f.Data)
		s.must(err)
	}
}

// applied marks everything as applied.
func (s *stage) applied() {
	s.Helper()
	st := s.log.State()
	s.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: st.Seq, Hash: st.Hash}}})
}

// trim deletes everything that is in the log by now.
func (s *stage) trim() {
	s.Helper()
	s.applied()
	s.must(s.log.Release(s.Context()))
	next, err := s.log.Log().Claim(s.Context(), queue.ClaimOptions{Owner: "a", Life: 1})
	s.must(err)
	s.log = next
	if _, err := s.log.Trim(s.Context(), math.MaxUint64); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) record(o RecordOptions, resumable bool) (*Recorder, bool) {
	s.Helper()
	o.Dir, o.Pipeline = s.dir, "shop"
	begun, _ := os.ReadFile(filepath.Join(s.dir, begunFile)) // "" where none has begun
	dropped := false
	if resumable {
		o.DropParts = func() error {
			dropped = true
			if now, _ := os.ReadFile(filepath.Join(s.dir, begunFile)); !bytes.Equal(now, begun) {
				s.Error("the parts of an earlier comparison are there after another one has begun")
			}
			return nil
		}
	}
	r, resumed, err := Record(s.Context(), s.pair, o)
	s.must(err)
	if resumable && dropped == resumed {
		s.Errorf("resumed %v, and parts are dropped: %v", resumed, dropped)
	}
	s.Cleanup(func() { _ = r.Close() })
	return r, resumed
}

// keep records a full comparison during which something happens, and keeps it.
func (s *stage) keep(o RecordOptions, during func(*Recorder)) (broken string) {
	s.Helper()
	r, _ := s.record(o, false)
	s.must(r.Along(s.Context(), func(context.Context) error {
		during(r)
		return nil
	}))
	broken, err := r.Keep([]report.Table{{Source: "Orders", Items: 3, Equal: 3, Verdict: report.Equal}})
	s.must(err)
	s.must(r.Close())
	return broken
}

// since returns what has changed since the last comparison: sort keys. why is that of a useless
// one.
func (s *stage) since() (c *Changed, sorts []string, why string) {
	s.Helper()
	c, err := SinceLast(s.Context(), s.pair, "shop", s.dir)
	return c, s.sorts(c, err), s.useless(err)
}

func (s *stage) useless(err error) string {
	s.Helper()
	if useless := (*Stale)(nil); errors.As(err, &useless) {
		return useless.Why
	}
	s.must(err)
	return ""
}

func (s *stage) sorts(c *Changed, err error) (sorts []string) {
	s.Helper()
	if err != nil {
		return nil
	}
	s.must(c.Items(10, func(batch []verify.Candidate) error {
		for _, x := range batch {
			var key struct{ Sk struct{ S string } }
			s.must(json.Unmarshal([]byte(x.Key), &key))
			sorts = append(sorts, key.Sk.S)
		}
		return nil
	}))
	return sorts
}

func (s *stage) want(what string, got []string, want ...string) {
	s.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestSinceLastHasWhatChangedAfterTheComparisonBegan: and what was not equal then. What was equal
// is not compared again, and once all is equal, the next one begins there.
func TestSinceLastHasWhatChangedAfterTheComparisonBegan(t *testing.T) {
	s := newStage(t)
	if _, _, why := s.since(); !strings.Contains(why, "no full comparison") {
		t.Errorf("without a comparison: %q", why)
	}
	s.write("before")
	s.applied()
	s.write("not applied when it began")
	before := s.pair.Now().Time()
	s.keep(RecordOptions{Strong: true}, func(r *Recorder) {
		s.write("during")
		for _, status := range []verify.Status{verify.Equal, verify.EqualByLog, verify.Kept, verify.Different,
			verify.Refused, verify.Unproven} {
			key := fmt.Sprintf(`{"pk":{"S":"p"},"sk":{"S":%q}}`, status)
			s.must(r.Item(&verify.Verdict{Key: key, Status: status, Rows: [][]byte{[]byte("r"), []byte("s")}}))
		}
	})
	s.write("after", "during")
	c, sorts, why := s.since()
	s.want("since the comparison", sorts, "after", "different", "during", "not applied when it began", "refused",
		"unproven")
	if why != "" || c.Result.OpenItems != 3 || c.Result.Tables[0].Result.Equal != 3 || c.Result.Verdict != report.Equal ||
		!c.Result.Strong || c.Result.Followed || c.Result.Ended.Before(c.Result.Began) || c.Began.Before(before) {
		t.Errorf("%q: %+v", why, c.Result)
	}
	s.must(c.Items(10, func(batch []verify.Candidate) error {
		for _, x := range batch {
			if strings.Contains(x.Key, "different") && len(x.Rows) != 2 {
				t.Errorf("the rows of what differed: %q", x.Rows)
			}
		}
		return nil
	}))
	s.must(c.Close())
	s.applied()
	again, sorts, _ := s.since()
	if len(sorts) != 6 {
		t.Errorf("again: %v", sorts)
	}
	s.write("meanwhile")
	s.must(again.Advance(6))
	s.must(again.Close())
	next, sorts, why := s.since()
	s.want("since all was equal", sorts, "meanwhile")
	r := next.Result
	if why != "" || r.OpenItems != 0 || r.Since == nil || r.Since.Items != 6 || r.Since.Began != again.Began ||
		r.Since.Ended.Before(r.Since.Began) || r.Tables[0].Result.Items != 3 {
		t.Errorf("%q: %+v", why, r)
	}
	if folders, err := filepath.Glob(filepath.Join(s.dir, folderPrefix+"*")); err != nil || len(folders) != 1 {
		t.Errorf("folders %v are left, %v", folders, err)
	}
	timed, err := SinceTime(t.Context(), s.pair, s.dir, change.MillisOf(before.Add(-time.Hour)))
	if got := s.sorts(timed, err); s.useless(err) != "" || len(got) != 5 || timed.Result != nil {
		t.Errorf("in the last hour: %v, %v", got, err)
	}
	if timed.Began.Before(before) {
		t.Errorf("it began at %s", timed.Began)
	}
	s.must(timed.EachCell(func(*verify.Open) error { return errors.New("a cell is kept") }))
	s.must(timed.Close())
	if _, err := os.Stat(timed.folder); !os.IsNotExist(err) {
		t.Errorf("the keys since a time are left: %v", err)
	}
	s.must(next.Close())
	if _, sorts, why = s.since(); why != "" {
		t.Errorf("what is kept was removed: %q, %v", why, sorts)
	}
}

// TestComparisonThatTheLogsContradictIsUseless: what happened behind its begin, and not before.
func TestComparisonThatTheLogsContradictIsUseless(t *testing.T) {
	s := newStage(t)
	s.applied()
	resync := func(id string) { s.append(&checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: id}}) }
	resync("before")
	if broken := s.keep(RecordOptions{Along: true}, func(*Recorder) { s.write("a") }); broken != "" {
		t.Errorf("a resync that was ordered before: %q", broken)
	}
	c, sorts, why := s.since()
	s.want("read along", sorts, "a")
	if why != "" || !c.Result.Followed {
		t.Errorf("%q: %+v", why, c.Result)
	}
	if why, err := c.Requested(t.Context()); why != "" || err != nil {
		t.Errorf("without requests: %q, %v", why, err)
	}
	requests, err := s.log.Log().Requests(t.Context())
	s.must(err)
	for _, chunk := range request.Split("repair", "me", []request.Item{{Key: json.RawMessage(`{}`)}}, time.Now()) {
		s.must(requests.Ask(t.Context(), chunk))
	}
	if why, err := c.Requested(t.Context()); !strings.Contains(why, "a repair of Orders") || err != nil {
		t.Errorf("with a request: %q, %v", why, err)
	}
	s.keep(RecordOptions{}, func(*Recorder) {})
	if c, _, why = s.since(); why != "" {
		t.Fatal(why)
	}
	if why, err := c.Requested(t.Context()); why != "" || err != nil {
		t.Errorf("a request before the comparison began: %q, %v", why, err)
	}
	resync("after")
	for range 2 { // and it stays so
		if _, _, why := s.since(); !strings.Contains(why, "the last full one began before a resync of Orders (entry") {
			t.Errorf("a resync: %q", why)
		}
	}
	broken := s.keep(RecordOptions{Along: true}, func(*Recorder) { resync("during") })
	if !strings.Contains(broken, "a resync") {
		t.Errorf("a resync during the comparison: %q", broken)
	}
}

// TestComparisonBesideAnOpenGapIsUseless: until the gap is accepted its shard is not read, and what
// it gets meanwhile is in no log. No entry behind the begin of the comparison says so.
func TestComparisonBesideAnOpenGapIsUseless(t *testing.T) {
	s := newStage(t)
	s.applied()
	now := s.pair.Now()
	feed := change.Feed{Stream: stream, Shard: "shard-1"}
	s.append(&checkpoint.Gap{Feed: feed, Since: now - 1000, Until: now, Found: now})
	s.keep(RecordOptions{}, func(*Recorder) {})
	s.append(&checkpoint.Control{Resume: true, At: now + 1000})
	if _, _, why := s.since(); !strings.Contains(why, "began while a loss of changes of Orders waited") {
		t.Errorf("begun before the gap was accepted: %q", why)
	}
	s.keep(RecordOptions{}, func(*Recorder) {})
	if _, _, why := s.since(); why != "" {
		t.Errorf("begun behind it: %q", why)
	}
}

// TestChangesThatAreTrimmedMakeItUseless: they are not known any more.
func TestChangesThatAreTrimmedMakeItUseless(t *testing.T) {
	s := newStage(t)
	s.applied()
	s.keep(RecordOptions{}, func(*Recorder) {})
	before := s.pair.Now()
	s.write("a")
	s.trim()
	for range 2 { // and it stays so
		if _, _, why := s.since(); !strings.Contains(why, "the log of Orders does not reach back") {
			t.Errorf("since the last one: %q", why)
		}
	}
	_, err := SinceTime(t.Context(), s.pair, s.dir, before-3_600_000)
	if why := s.useless(err); !strings.Contains(why, "the log of Orders does not reach back") {
		t.Errorf("since a time: %q", why)
	}
}

// TestResultNamesWhatItIsOf: table, mapping, log and life, so that another one's is not taken for
// it.
func TestResultNamesWhatItIsOf(t *testing.T) {
	s := newStage(t)
	s.write("a")
	s.applied()
	mark := s.log.State().Marks[checkpoint.SinkBigtable]
	began := s.pair.Now().Time()
	s.keep(RecordOptions{}, func(*Recorder) {})
	r, err := LoadSaved(s.dir)
	s.must(err)
	x, table := r.Tables[0], s.pair.Tables[0]
	if x.TableID != table.Info.ID || x.TableID == "" || x.Life != 1 || !x.LogCreated.Equal(s.log.Log().Created()) ||
		x.MappingHash == "" || x.MappingHash != table.Identity("shop", s.pair.Sink()).MappingHash ||
		x.Mark != mark || x.Begun != s.log.State().Seq || r.Began.Before(began) || r.Pipeline != "shop" ||
		r.Target != "orders" {
		t.Errorf("%+v", r)
	}
	for name, change := range map[string]func(*Saved){
		"of another mapping": func(r *Saved) { r.Tables[0].MappingHash = "x" },
		"of another life":    func(r *Saved) { r.Tables[0].Life = 2 },
	} {
		other := *r
		other.Tables = slices.Clone(r.Tables)
		change(&other)
		s.must(other.write(filepath.Join(s.dir, resultFile)))
		c, _, why := s.since()
		if why == "" || c.Result == nil {
			t.Errorf("%s: %+v", name, c.Result)
		}
		s.must(other.write(filepath.Join(s.dir, begunFile)))
		if _, resumed := s.record(RecordOptions{}, true); resumed {
			t.Errorf("%s: resumed", name)
		}
		s.must(os.Remove(filepath.Join(s.dir, begunFile)))
	}
}

// TestInterruptedComparisonIsResumedWhereItServes: with the same reads, while its keys are there.
func TestInterruptedComparisonIsResumedWhereItServes(t *testing.T) {
	s := newStage(t)
	s.applied()
	first, resumed := s.record(RecordOptions{Strong: true, Along: true}, true)
	if resumed {
		t.Error("there was nothing to resume")
	}
	s.write("a")
	s.must(first.follow(t.Context()))
	s.must(first.Close())
	for name, c := range map[string]struct {
		o         RecordOptions
		resumable bool
		want      bool
	}{
		"the same":            {RecordOptions{Strong: true, Along: true}, true, true},
		"without its parts":   {RecordOptions{Strong: true, Along: true}, false, false},
		"weaker reads":        {RecordOptions{Along: true}, true, false},
		"not reading the log": {RecordOptions{Strong: true}, true, false},
		"by workers":          {RecordOptions{Strong: true, Along: true, ByWorkers: true}, true, false},
	} {
		begun, err := os.ReadFile(filepath.Join(s.dir, begunFile))
		s.must(err)
		r, resumed := s.record(c.o, c.resumable)
		if resumed != c.want || (r.result.Folder == first.result.Folder) != c.want {
			t.Errorf("%s: resumed %v, in %s", name, resumed, r.result.Folder)
		}
		s.must(os.WriteFile(filepath.Join(s.dir, begunFile), begun, 0o600))
	}
	for age, want := range map[time.Duration]bool{23 * time.Hour: true, 25 * time.Hour: false} {
		begun, err := load(filepath.Join(s.dir, begunFile))
		s.must(err)
		old := *begun
		old.Began = s.pair.Now().Time().Add(-age)
		s.must(old.write(filepath.Join(s.dir, begunFile)))
		r, resumed := s.record(RecordOptions{Strong: true, Along: true}, true)
		if resumed != want || r.result.Began.Equal(old.Began) != want {
			t.Errorf("interrupted %s ago: resumed %v, begun at %s", age, resumed, r.result.Began)
		}
		s.must(begun.write(filepath.Join(s.dir, begunFile)))
	}
	// Workers began behind it, and were killed: the parts are older than that record's logs.
	before, err := os.ReadFile(filepath.Join(s.dir, begunFile))
	s.must(err)
	s.record(RecordOptions{Strong: true, Along: true, ByWorkers: true}, false)
	if _, resumed := s.record(RecordOptions{Strong: true, Along: true}, true); resumed {
		t.Error("a comparison by workers that began later takes the parts")
	}
	s.must(os.WriteFile(filepath.Join(s.dir, begunFile), before, 0o600))
	errFull := errors.New("full")
	_, _, err = Record(t.Context(), s.pair,
		RecordOptions{Dir: s.dir, Pipeline: "shop", Strong: true, DropParts: func() error { return errFull }})
	if !errors.Is(err, errFull) {
		t.Errorf("parts that cannot be dropped: %v", err)
	}
	r, resumed := s.record(RecordOptions{Strong: true, Along: true}, true)
	if !resumed {
		t.Error("parts that could not be dropped are of another comparison now")
	}
	_, err = r.Keep([]report.Table{{Source: "Orders"}})
	s.must(err)
	if _, sorts, why := s.since(); why != "" || len(sorts) != 1 {
		t.Errorf("what the first process had read: %v, %q", sorts, why)
	}
	if _, err := os.Stat(filepath.Join(s.dir, begunFile)); !os.IsNotExist(err) {
		t.Errorf("a comparison that has ended is resumed: %v", err)
	}
	old, _ := s.record(RecordOptions{}, true)
	s.must(os.RemoveAll(filepath.Join(s.dir, old.result.Folder, keysFolder)))
	if r, resumed := s.record(RecordOptions{}, true); resumed || r.result.Folder == old.result.Folder {
		t.Error("one without keys is resumed")
	}
}

// TestKeptCellsThatAreGoneAreNotFound: of the cells without an owner, those count that are still in
// the target.
func TestKeptCellsThatAreGoneAreNotFound(t *testing.T) {
	s := newStage(t)
	s.applied()
	open := func(row, qualifier string) *verify.Open {
		return &verify.Open{Kind: verify.Foreign, Row: []byte(row), Family: "d", Qualifier: []byte(qualifier)}
	}
	s.keep(RecordOptions{}, func(r *Recorder) {
		for _, o := range []*verify.Open{open("a", "x"), open("a", "gone"), open("b", "x"), open("gone", "x")} {
			s.must(r.Cell(o))
		}
	})
	x := bigtable.Cell{Family: "d", Qualifier: []byte("x")}
	rows := lookup{rows: map[string][]bigtable.Cell{
		"a": {{Family: "other", Qualifier: []byte("gone")}, x, {Family: "d", Qualifier: []byte("y")}}, "b": {x},
	}}
	c, _, why := s.since()
	if why != "" || c.Result.OpenCells != 4 {
		t.Fatalf("%q: %+v", why, c.Result)
	}
	cells := func() (got []string) {
		check := verify.Checker{Settler: s.pair.Settler(), Cell: func(o *verify.Open) error {
			got = append(got, string(o.Row)+" "+string(o.Qualifier))
			return nil
		}}
		check.Target, check.Prove = rows, func(context.Context, change.Millis) error { return nil }
		s.must(check.Cells(t.Context(), 0, c.EachCell))
		return got
	}
	s.want("cells", cells(), "a x", "b x")
	s.must(c.Advance(0))
	if c, _, _ = s.since(); c.Result.OpenCells != 0 {
		t.Errorf("%d cells are open when all is equal", c.Result.OpenCells)
	}
	s.want("cells", cells())
}

// TestWhatWasNotEqualIsNeverForgotten: where its keys or cells are lost, nothing shows any more
// that all is equal.
func TestWhatWasNotEqualIsNeverForgotten(t *testing.T) {
	s := newStage(t)
	s.applied()
	for name, lose := range map[string]func(folder string) error{
		"nothing": func(string) error { return nil },
		"a run that was not written": func(folder string) error {
			return os.Truncate(filepath.Join(folder, keysFolder, "part-00000-00000.run"), 3)
		},
		"a run": func(folder string) error {
			return os.Remove(filepath.Join(folder, keysFolder, "part-00000-00000.run"))
		},
		"a cell": func(folder string) error {
			path := filepath.Join(folder, cellsFile)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, int64(bytes.IndexByte(b, '\n'))+1)
		},
		"all cells": func(folder string) error { return os.Remove(filepath.Join(folder, cellsFile)) },
	} {
		s.keep(RecordOptions{}, func(r *Recorder) {
			s.must(r.Item(&verify.Verdict{Key: `{"pk":{"S":"p"},"sk":{"S":"a"}}`, Status: verify.Different}))
			s.must(r.Cell(&verify.Open{Row: []byte("r"), Family: "d"}))
			s.must(r.Cell(&verify.Open{Row: []byte("s"), Family: "d"}))
		})
		kept, err := LoadSaved(s.dir)
		s.must(err)
		s.must(lose(filepath.Join(s.dir, kept.Folder)))
		_, sorts, why := s.since()
		if strings.Contains(why, "not all kept") != (name != "nothing") || (why == "") != (len(sorts) == 1) {
			t.Errorf("%s: %q, %v", name, why, sorts)
		}
	}
}

// lookup is a target that can only be looked up.
type lookup struct {
	verify.Target
	rows map[string][]bigtable.Cell
}

func (l lookup) Lookup(_ context.Context, keys []string, f func(*verify.Row) error) error {
	for _, key := range keys {
		if cells, ok := l.rows[key]; ok {
			if err := f(&verify.Row{Key: []byte(key), Cells: cells}); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestResultIsKeptWithoutItsCleanUp: Rule 15. It is stored, whatever becomes of what is left of its
// beginning; and what stays of that is not gone on with.
func TestResultIsKeptWithoutItsCleanUp(t *testing.T) {
	s := newStage(t)
	r, _ := s.record(RecordOptions{Strong: true}, true)
	begun, err := os.ReadFile(filepath.Join(s.dir, begunFile))
	s.must(err)
	s.must(os.Remove(filepath.Join(s.dir, begunFile)))
	_, err = r.Keep([]report.Table{{Source: "Orders", Verdict: report.Equal}})
	s.must(err)
	if kept, err := load(filepath.Join(s.dir, resultFile)); err != nil || kept.Verdict != report.Equal {
		t.Errorf("%+v, %v", kept, err)
	}
	s.must(os.WriteFile(filepath.Join(s.dir, begunFile), begun, 0o600))
	if _, resumed := s.record(RecordOptions{Strong: true}, true); resumed {
		t.Error("a comparison that has ended is resumed")
	}
}
