package audit

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// run is one comparison.
type run struct {
	o      Options
	pair   *pair.Pair
	base   string // directory of the target
	wanted []string
	tables []verify.Table

	doubts   map[string][]string // ids of gaps, by table
	recorder *Recorder           // nil: only some tables of the target are compared

	result  []report.Table
	index   []int // of a table of the pair in result; -1: not compared
	settled int64

	candidates int64 // that are settled, about: an item may be named several times; 0: not known
}

func newRun(cfg *config.Config, s *pair.Pair, o Options) *run {
	o.Strong = o.Strong || o.Along || o.Workers != nil // exports show every change up to their moment
	r := &run{o: o, pair: s, base: SavedDir(cmp.Or(o.Scratch, cfg.Scratch), cfg.Pipeline, s.Target)}
	r.names()
	return r
}

// all reports whether all tables of the target are compared.
func (r *run) all() bool { return len(r.wanted) == len(r.pair.Tables) }

// folder returns the name of the folder for what is sorted.
func (r *run) folder() string {
	switch {
	case r.o.Workers != nil:
		return "workers"
	case r.all():
		return "all"
	}
	return "table-" + r.o.Table
}

// lockFolder returns the folder that the comparison locks: the same for each that compares a whole
// target, because they share one result, and one note of a begin.
func (r *run) lockFolder() string {
	if r.all() {
		return filepath.Join(r.base, "all")
	}
	return filepath.Join(r.base, r.folder())
}

// names chooses what is compared.
func (r *run) names() {
	for _, t := range r.pair.Tables {
		at := -1
		if r.o.Table == "" || r.o.Table == t.Source {
			at = len(r.result)
			r.wanted = append(r.wanted, t.Source)
			r.result = append(r.result, report.Table{Source: t.Source, Target: t.Target, Lagging: !r.o.Strong,
				Retired: r.pair.Retired(), Proof: report.Assumed})
			r.result[at].CountGroups(Templates(t.Program), r.o.Values)
		}
		r.index = append(r.index, at)
	}
}

// identity names what finished parts belong to.
func (r *run) identity() string {
	parts := []string{"verify", fmt.Sprint(r.o.Strong)}
	for _, t := range r.pair.Tables {
		hash := t.Program.Hash()
		parts = append(parts, t.Source, t.Info.ID, fmt.Sprintf("%x", hash[:]))
	}
	return strings.Join(append(parts, r.wanted...), " ")
}

func (r *run) estimate() (items int64) {
	for i := range r.tables {
		items += r.tables[i].Items
	}
	return items
}

func (r *run) step(doing string, items, estimate int64) {
	if r.o.Progress != nil {
		r.o.Progress(Step{doing, items, estimate})
	}
}

func (r *run) say(line string) {
	if r.o.Say != nil {
		r.o.Say(line)
	}
}
