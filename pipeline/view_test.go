package pipeline

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// ownedTable is a pipeline of one table, with the claimed log of the table.
func ownedTable(t *testing.T, o Options) (*Pipeline, *table, *queue.Writer) {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: "http://127.0.0.1:1"}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	o.Tables = []Table{{Source: "Orders", Target: "orders"}}
	p := New(o, src, q, nil, zap.NewNop(), nil)
	p.tables[0].stream.Store(log)
	return p, p.tables[0], w
}

// TestTableIsLateAfterItsOwnTime, where it has one.
func TestTableIsLateAfterItsOwnTime(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{0: time.Minute, time.Hour: time.Hour} {
		e := &env{Table: Table{Late: own}, o: &Options{Periods: Periods{Late: time.Minute}}}
		if got := (&tableView{env: e}).late(); got != want {
			t.Errorf("%v: late after %v, want %v", own, got, want)
		}
	}
}

// gauges returns the gauges of a pipeline's only table, by name.
func gauges(t *testing.T, p *Pipeline) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	registerMetrics(reg, p)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		all[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return all
}

// TestOwnerIsWhoCarriesTheTable: a process that has halted the table releases its log until the
// next try, and carries it. One that stands by does not, and neither does one that cannot reach the
// log for as long as a silent owner counts as alive.
func TestOwnerIsWhoCarriesTheTable(t *testing.T) {
	halt := &checkpoint.Halt{Reason: "no table"}
	for name, c := range map[string]struct {
		set     func(*tableView)
		ttl     time.Duration // 0: NATS answers
		carries bool
	}{
		"not claimed": {set: func(*tableView) {}},
		"waiting":     {set: func(v *tableView) { v.setPhase(phaseWaiting) }},
		"claimed":     {set: func(v *tableView) { v.setPhase(phaseClaimed) }, carries: true},
		"working":     {set: func(v *tableView) { v.setPhase(phaseWorking) }, carries: true},
		"halted":      {set: func(v *tableView) { v.publish(func(s *snapshot) { s.halt = halt }) }, carries: true},
		"halted, and another one owns it": {set: func(v *tableView) {
			v.publish(func(s *snapshot) { s.halt = halt })
			v.noteRival("b", 2)
		}},
		"claimed, and away for a moment": {func(v *tableView) { v.setPhase(phaseClaimed) }, time.Hour, true},
		"claimed, and away for long":     {func(v *tableView) { v.setPhase(phaseClaimed) }, 1, false},
	} {
		o := Options{Tables: []Table{{Source: "Orders", Target: "orders"}}, Services: &Services{}}
		if o.Periods.ClaimTTL = c.ttl; c.ttl > 0 {
			o.Services.Reporter(status.NATS)("append", errors.New("away"))
		}
		p := New(o, &source.Source{}, &queue.Queue{}, nil, zap.NewNop(), nil)
		c.set(p.tables[0].view)
		if got := gauges(t, p)["tailrace_table_owner"]; got != one(c.carries) {
			t.Errorf("%s: tailrace_table_owner is %v", name, got)
		}
	}
}

// TestArchiveFollowsTheLog: hours are closed by what the log holds while the archive works, and not
// by what it held at the start.
func TestArchiveFollowsTheLog(t *testing.T) {
	p := New(Options{Tables: []Table{{Source: "Orders", Target: "orders"}}}, &source.Source{}, nil, nil, zap.NewNop(), nil)
	x, arch := p.tables[0], archiving.New(archiving.Options{Logger: zap.NewNop()})
	x.view.publish(func(s *snapshot) { s.parts.archiver = arch })
	s := checkpoint.NewState()
	s.Marks[checkpoint.SinkArchive] = checkpoint.Mark{Seq: 5}
	s.Watermarks = []checkpoint.Watermark{{Seq: 5, Time: 7000}}
	if x.observe(s); arch.Status().Through != 7000 {
		t.Errorf("the archive has every deletion up to %d, according to the log up to 7000", arch.Status().Through)
	}
}

// TestEndOfATableThatWasNotOwnedIsNotUnsaved: it had nothing to save.
func TestEndOfATableThatWasNotOwnedIsNotUnsaved(t *testing.T) {
	for phase, unsaved := range map[phase]bool{
		phaseIdle: false, phaseWaiting: false, phaseClaimed: true, phaseWorking: true,
	} {
		for _, saved := range []bool{false, true} {
			p, x, _ := ownedTable(t, Options{})
			x.view.publish(func(s *snapshot) { s.phase, s.saved = phase, saved })
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := x.run(ctx); err != nil {
				t.Fatal(err)
			}
			got := slices.Equal(p.Unsaved(), []string{"Orders"})
			if got != (unsaved && !saved) || x.view.latest().phase != phaseIdle {
				t.Errorf("phase %d, saved %t: unsaved %t", phase, saved, got)
			}
		}
	}
}

// TestClaimedLogIsNotSavedByTheLifeBefore: its newest marks are those of an earlier owner.
func TestClaimedLogIsNotSavedByTheLifeBefore(t *testing.T) {
	_, x, w := ownedTable(t, Options{Periods: Periods{Beat: time.Millisecond}})
	if _, err := w.Append(t.Context(), &checkpoint.Control{Pause: new(true)}, nil); err != nil {
		t.Fatal(err)
	}
	x.view.publish(func(s *snapshot) { s.saved = true })
	ctx, leaving := life.WithLeaving(t.Context(), nil)
	x.yielding.Store(leaving)
	if _, err := x.currentLog().Claim(ctx, queue.ClaimOptions{Owner: "b", Alone: true}); err != nil {
		t.Fatal(err)
	}
	if err := x.runClaimed(ctx, w); !errors.Is(err, queue.ErrLost) && !errors.Is(err, queue.ErrOutcomeUnknown) {
		t.Fatalf("a log that another process has claimed: %v", err)
	}
	if now := x.view.latest(); now.saved || now.phase != phaseClaimed {
		t.Errorf("saved %t, phase %d", now.saved, now.phase)
	}
}

// TestTableBetweenTwoLivesIsLive: reading its log again may take as long as NATS is away.
func TestTableBetweenTwoLivesIsLive(t *testing.T) {
	o := Options{Tables: []Table{{Source: "Orders", Target: "orders"}}, Periods: Periods{ClaimTTL: time.Second}}
	p := New(o, nil, &queue.Queue{}, nil, zap.NewNop(), nil)
	v := p.tables[0].view
	v.publish(func(s *snapshot) {
		s.seen, s.phase = status.Unseen("Orders", "orders", time.Now().Add(-time.Hour)), phaseWorking
		s.parts.sink, s.parts.copier, s.parts.whole = &apply.Sink{}, &resync.Copier{}, &resync.Whole{}
	})
	if p.Live() == nil {
		t.Error("a loop that stands still is live")
	}
	v.endWork()
	if err := p.Live(); err != nil {
		t.Error(err)
	}
	if now := v.latest(); now.phase != phaseClaimed || now.parts != (parts{}) {
		t.Errorf("phase %d, and it shows %+v", now.phase, now.parts)
	}
}

// TestHaltNamesOneSetting: the others that are wrong, of the same system or of another one, are
// reasons of their own.
func TestHaltNamesOneSetting(t *testing.T) {
	queues := protocol.Premises{{Code: "age"}, {Code: "discard", Unsafe: true}, {Code: "limit", Unsafe: true}}
	rules := protocol.Premises{{Code: "data"}, {Code: "guards", Unsafe: true}}
	halt := &checkpoint.Halt{Code: outcome.CodePremise}
	for name, c := range map[string]struct {
		halt *checkpoint.Halt
		code string // that status shows, of the table's halt or of a sink's
		want string
	}{
		"of neither":   {nil, "", "age discard limit data guards"},
		"of the queue": {halt, outcome.CodePremise, "age limit data guards"},
		"of the sink":  {nil, outcome.CodePremise, "age discard limit data"},
		"other":        {&checkpoint.Halt{Code: outcome.CodeMissing}, outcome.CodeMissing, "age discard limit data guards"},
	} {
		var codes []string
		s := &snapshot{premises: queues, settings: rules, halt: c.halt}
		for _, p := range s.unnamed(&TableStatus{Code: c.code}) {
			codes = append(codes, p.Code)
		}
		if got := strings.Join(codes, " "); got != c.want || len(s.broken()) != len(queues)+len(rules) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Rule 13: one answer that DynamoDB has no such table is shown by nothing, the same answer again
// is, and a description ends it.
func TestOneDenialDoesNotNameATableAsDeleted(t *testing.T) {
	_, table, _ := ownedTable(t, Options{Name: "shop"})
	gone := func() bool {
		st := table.view.status(time.Now())
		return st.Has(status.WhyVanished)
	}
	for i, c := range []struct {
		times int
		gone  bool
	}{{1, false}, {2, true}, {3, true}, {1, true}, {0, false}} { // at 1 for the second time a life begins
		table.view.tableGone(c.times)
		if gone() != c.gone {
			t.Errorf("answer %d: after %d denials in a row it is deleted: %v", i, c.times, gone())
		}
	}
	table.view.tableGone(2)
	if table.view.noteRival("other", 2); gone() {
		t.Error("deleted, while another process carries it and this one asks nothing")
	}
}

// A table that a try of a halted table describes is there, whatever the life before has found.
func TestDescribedTableIsThere(t *testing.T) {
	_, table, _ := ownedTable(t, Options{Name: "shop"})
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"Table": {"TableName": "Orders", "TableStatus": "ACTIVE",
			"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}}`)
	}))
	t.Cleanup(answers.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: answers.URL}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	table.source = src
	table.view.tableGone(2)
	err = table.describe(t.Context()) // it has no stream
	if n := table.view.latest().denied; n != 0 || source.Answered(err) {
		t.Errorf("%d denials count, although the table was described: %v", n, err)
	}
}
