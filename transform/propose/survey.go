package propose

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform"
)

// Survey runs sampled items through a mapping and reports what it would do to them.
type Survey struct {
	p       *transform.Program
	items   int
	refused map[string]int    // by code
	reason  map[string]string // an example per code
	lost    map[string]int    // by attribute that nothing writes
	rows    map[string]*rowSize
	places  places
	heads   map[string]*heads // by rule or index
}

type rowSize struct{ cells, bytes int }

// NewSurvey returns a survey of a program.
func NewSurvey(p *transform.Program) *Survey {
	return &Survey{p: p, refused: map[string]int{}, reason: map[string]string{}, lost: map[string]int{},
		rows:   map[string]*rowSize{},
		places: places{seed: maphash.MakeSeed(), owners: map[uint64]uint64{}, shared: map[string]int{}},
		heads:  map[string]*heads{}}
}

// Add runs one item through the mapping.
func (s *Survey) Add(img change.Image) {
	s.items++
	for _, u := range s.p.Coverage(img) {
		if u.Use == "lost" {
			s.lost[u.Attr]++
		}
	}
	rows, err := s.p.Project(img)
	if err != nil {
		code := "error"
		if r := (*transform.Refusal)(nil); errors.As(err, &r) {
			code = r.Code
		}
		s.refused[code]++
		s.reason[code] = err.Error()
		return
	}
	for _, l := range s.p.Leads(img) {
		h := s.heads[l.Row]
		if h == nil {
			h = &heads{lead: l, first: map[string]int{}}
			s.heads[l.Row] = h
		}
		h.add(l)
	}
	key, err := s.p.Table().Schema.Canonical(nil, img)
	for i := range rows {
		s.size(&rows[i])
		if err == nil {
			s.places.add(&rows[i], change.HashKey(key))
		}
	}
}

// size adds the cells of a row to its totals.
func (s *Survey) size(row *transform.Row) {
	r := s.rows[string(row.Key)]
	if r == nil {
		r = &rowSize{}
		s.rows[string(row.Key)] = r
	}
	r.cells += len(row.Cells)
	for _, c := range row.Cells {
		r.bytes += len(c.Value) + len(c.Qualifier)
	}
}

// Rows returns the row keys that the sample gave, sorted.
func (s *Survey) Rows() [][]byte {
	out := make([][]byte, 0, len(s.rows))
	for _, k := range slices.Sorted(maps.Keys(s.rows)) {
		out = append(out, []byte(k))
	}
	return out
}

// Sizes of rows to warn of. Source: https://cloud.google.com/bigtable/quotas#limits-data-size
const (
	manyCells = 500
	largeRow  = 100 << 20
)

// Findings returns what the sample showed: dead letters to expect, attributes that nothing writes,
// items that overwrite each other, rows that grow too large or go to one place.
func (s *Survey) Findings() []problem.Problem {
	ps := &problem.Collector{Table: s.p.Table().Source}
	for _, code := range slices.Sorted(maps.Keys(s.refused)) {
		ps.Errorf(problem.Text{Path: "sample"}, "refused", "they would become dead letters: change the mapping",
			"%s of %d sampled items are refused: %s", share(s.refused[code], s.items), s.items, s.reason[code])
	}
	for _, attr := range slices.Sorted(maps.Keys(s.lost)) {
		ps.Errorf(problem.Text{Path: attr}, "lost", "map it, or leave it out on purpose with ignore: ["+attr+"]",
			"attribute %q of %s of the sampled items is written nowhere", attr, share(s.lost[attr], s.items))
	}
	s.places.findings(ps, s.p.SharesCells())
	wide, large := 0, 0
	for _, r := range s.rows {
		if r.cells > manyCells {
			wide++
		}
		if r.bytes > largeRow {
			large++
		}
	}
	if wide > 0 {
		ps.Warnf(problem.Text{Path: "sample"}, "many_cells", "every cell has an overhead: write large items as documents",
			"%s more than %d cells", have(wide, "row"), manyCells)
	}
	if large > 0 {
		ps.Warnf(problem.Text{Path: "sample"}, "large_row", "split it: row: \"{pk}#{bucket}\"",
			"%s more than 100 MB; at 256 MB a row cannot be read", have(large, "row"))
	}
	for _, row := range slices.Sorted(maps.Keys(s.heads)) {
		s.heads[row].findings(ps)
	}
	return ps.List
}

// count returns "1 item" or "2 items".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// have returns "1 item has" or "2 items have".
func have(n int, noun string) string {
	if n == 1 {
		return count(n, noun) + " has"
	}
	return count(n, noun) + " have"
}

// share returns n of all as a percentage, or "all".
func share(n, of int) string {
	if of == 0 || n == of {
		return "all"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
