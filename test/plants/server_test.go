package plants

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/change"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// server is a world whose target is the sandbox's Bigtable too, written and read by the real sink.
type server struct {
	*World
	t      *testing.T
	client *bigtable.Client
	raw    *cloud.Table
}

func newServer(t *testing.T, seed uint64) *server {
	t.Helper()
	front, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	s := &server{t: t}
	s.client, err = bigtable.Open(t.Context(), bigtable.Options{Project: "p", Instance: "i", Endpoint: front.Addr(),
		Pipeline: "p", Seal: Sealer(), Now: func() time.Time { return s.Now().Time() }},
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close() })
	raw, err := cloud.NewClient(t.Context(), "p", "i", option.WithEndpoint(front.Addr()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	s.raw = raw.Open("target")
	// The history begins now, because the sandbox collects what is old by its own clock.
	w, err := NewAt(seed, time.Now().UnixMilli(), func(w *World) func(*transform.Write) error {
		s.World = w
		var programs []transform.Family
		for _, x := range w.Tables {
			programs = append(programs, x.Program.Families()...)
		}
		slices.SortFunc(programs, func(a, b transform.Family) int { return strings.Compare(a.Name, b.Name) })
		programs = slices.CompactFunc(programs, func(a, b transform.Family) bool { return a.Name == b.Name })
		s.client.Declare("target", w.families)
		tables := tableschema.Tables([]tableschema.Table{{Name: "target", Families: programs}}, 7*24*time.Hour)
		if _, err := s.client.Ensure(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		return func(write *transform.Write) error { return s.client.Apply(t.Context(), "target", write) }
	})
	if err != nil {
		t.Fatalf("%v\n%v", err, w)
	}
	for row := range w.Bigtable.Rows {
		s.mirror(row)
	}
	return s
}

// mirror makes a row of the server what it is in memory.
func (s *server) mirror(row string) {
	s.t.Helper()
	m := cloud.NewMutation()
	m.DeleteRow()
	for _, c := range s.Bigtable.Rows[row].Cells {
		m.Set(c.Family, c.Qualifier, cloud.Timestamp(c.At*1000), []byte(c.Value))
	}
	if err := s.raw.Apply(s.t.Context(), row, m); err != nil {
		s.t.Fatal(err)
	}
}

// rows returns what both sides show a reader, with the guards.
func (s *server) rows() (server, memory string) {
	s.t.Helper()
	text := func(b *strings.Builder) func(*verify.Row) error {
		return func(r *verify.Row) error {
			var cells []string
			for _, c := range slices.Concat(r.Cells, r.Live, r.Dead) {
				cells = append(cells, fmt.Sprintf("%s %s:%q %d %q\n", r.Key, c.Family, c.Qualifier, c.Time.UnixMilli(), c.Value))
			}
			slices.Sort(cells) // the families come in different orders
			_, err := b.WriteString(strings.Join(cells, ""))
			return err
		}
	}
	var a, b strings.Builder
	if err := s.target().Scan(s.t.Context(), text(&a)); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Scan(s.t.Context(), text(&b)); err != nil {
		s.t.Fatal(err)
	}
	return a.String(), b.String()
}

func (s *server) target() *verify.BigtableTarget {
	var programs []*transform.Program
	for i := range s.Tables {
		programs = append(programs, s.Tables[i].Program)
	}
	return verify.NewTarget(s.client, "target", programs...)
}

func (s *server) settler() verify.Settler {
	x := *s.Settler()
	x.Target, x.Tables = s.target(), slices.Clone(s.Tables)
	for i := range x.Tables {
		x.Tables[i].Page = func(context.Context, int, string) (*source.ItemPage, error) {
			p := &source.ItemPage{Requested: s.Now(), Answered: s.Now(), Done: true}
			for _, of := range s.existing() {
				if of.Table == i {
					p.Items = append(p.Items, []byte(s.Items[of]))
				}
			}
			return p, nil
		}
	}
	return x
}

// full compares everything.
func (s *server) full() *verify.Findings {
	s.t.Helper()
	x := s.settler()
	f, err := verify.Full(s.t.Context(), verify.FullOptions{Dir: filepath.Join(s.t.TempDir(), "scratch"), Identity: "x",
		Now: s.Now, Lead: Lead}, x.Tables, x.Target)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = f.Close() })
	return f
}

// verify returns what a full comparison finds, settled: what `replicator verify` does.
func (s *server) verify() (names []string) {
	s.t.Helper()
	c := verify.Checker{Settler: s.settler(), Verdict: func(v *verify.Verdict) error {
		if v.Status != verify.Equal && v.Status != verify.Kept {
			names = append(names, "item "+sourceOf(v.Table)+" "+v.Key)
		}
		return nil
	}, Cell: func(o *verify.Open) error {
		names = append(names, string(o.Kind)+" "+CellName(string(o.Row), o.Family, string(o.Qualifier)))
		return nil
	}}
	if err := c.Findings(s.t.Context(), s.full()); err != nil {
		s.t.Fatal(err)
	}
	return names
}

// repair does what the owner of a table does with items that differ.
func (s *server) repair(ctx context.Context, repairs []verify.Repair) (done []verify.Repaired, err error) {
	s.now += 120_000
	for _, x := range repairs {
		p, table := s.Tables[x.Table].Program, sourceOf(x.Table)
		r := transform.Resync{Keys: []byte(x.Key), Version: change.Version(s.now - 60_000), Rows: x.Rows,
			Future: x.Future}
		b, err := s.ReadItems(ctx, table, [][]byte{r.Keys})
		if err != nil {
			return nil, err
		}
		r.Item = b.Items[0]
		read, err := p.RowsToRead(new(change.Decoder), &r)
		if err != nil {
			return nil, err
		}
		of := transform.Item{Guard: guard.Qualifier("p", table, r.Keys), Table: table, Key: r.Keys, Pipeline: "p"}
		if r.Held, err = s.client.HeldRows(ctx, "target", of, read); err != nil {
			return nil, err
		}
		var w transform.Write
		if err := p.Resync(new(change.Decoder), &r, &w); err != nil {
			return nil, err
		}
		for i := 0; x.Future > 0 && i < len(w.Rows); i++ {
			if _, err := s.client.ReplaceGuard(ctx, "target", bigtable.Replacement{Write: &w, Row: i, Broken: x.Future,
				Lead: time.Hour}); err != nil {
				return nil, err
			}
		}
		if _, err := s.client.Resync(ctx, "target", &w, nil); err != nil {
			return nil, err
		}
		done = append(done, verify.Repaired{Written: len(w.Rows)})
	}
	return done, nil
}

// TestPlantsOnAServer: what the real sink writes, by the real reads, sorted runs, settling and
// repairs. The table in memory holds the same as the server after each history, so what is shown in
// memory is true of the server.
func TestPlantsOnAServer(t *testing.T) {
	n := max(*worlds/10, 20)
	if testing.Short() {
		n = 4
	}
	for seed := *from; seed < *from+n; seed++ {
		s := newServer(t, seed)
		server, memory := s.rows()
		if diff := cmp.Diff(memory, server); diff != "" {
			t.Fatalf("the server does not hold what the memory does (-memory +server):\n%s\n%v", diff, s.World)
		}
		if found := s.verify(); len(found) > 0 {
			t.Fatalf("after the history: %q\n%v", found, s.World)
		}
		p := s.Plant()
		for p == nil || p.Name() == "" {
			if p != nil && p.undo != nil {
				p.undo()
			}
			p = s.Plant()
		}
		s.mirror(p.Row)
		if diff := cmp.Diff([]string{p.Name()}, s.verify()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s\n%v", p.What, diff, s.World)
		}
		r := verify.Resyncer{Settler: s.settler(), Repair: s.repair}
		res, err := r.Run(t.Context(), s.full())
		if err != nil {
			t.Fatal(err)
		}
		if p.Item == nil { // repair --delete-foreign
			p.undo()
			s.mirror(p.Row)
		} else if healed, why := res.Healed(false); !healed || res.Different != 1 || res.Repaired != 1 {
			t.Fatalf("%s: %s: %+v\n%v", p.What, why, res, s.World)
		}
		if found := s.verify(); len(found) > 0 {
			t.Fatalf("%s, after its repair: %q\n%v", p.What, found, s.World)
		}
	}
}
