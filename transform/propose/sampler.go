package propose

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Index is a secondary index of the source table. Key has the attributes of its key in order: those
// of the partition key, then those of the sort key.
type Index struct {
	Name string
	Key  []change.KeyAttr
}

// Source describes a table as DescribeTable does.
type Source struct {
	Table   string
	Schema  change.KeySchema
	TTLAttr string
	Indexes []Index
}

// Sampler collects what a proposal needs from items of one table.
type Sampler struct {
	src    Source
	items  int
	attrs  map[string]*attribute
	first  map[string]int  // first parts of partition keys
	second map[string]int  // first two parts of partition keys
	pairs  map[pair]*tally // by forms of keys
	hashes int             // partition keys with a '#'
	joined map[string]int  // keys joined by '#' without escaping
	wide   int             // items of more than 500 attributes and members
}

// attribute counts the values of one attribute.
type attribute struct {
	kinds   map[change.Kind]int
	seen    int
	notInt  int // numbers that are not 64-bit integers
	times   int // texts or numbers that look like times
	numbers int // texts of digits only
	padded  map[int]int
}

// New returns a sampler for a table.
func New(src Source) *Sampler {
	return &Sampler{src: src, attrs: map[string]*attribute{}, first: map[string]int{}, second: map[string]int{},
		pairs: map[pair]*tally{}, joined: map[string]int{}}
}

// Items returns how many items were added.
func (s *Sampler) Items() int { return s.items }

// Add adds one item to the sample.
func (s *Sampler) Add(img change.Image) {
	s.items++
	cells := 0
	for i := range img {
		a := s.attrs[img[i].Name]
		if a == nil {
			a = &attribute{kinds: map[change.Kind]int{}, padded: map[int]int{}}
			s.attrs[img[i].Name] = a
		}
		a.add(&img[i].Value)
		cells += 1 + len(img[i].Value.M)
	}
	if cells > 500 {
		s.wide++
	}
	s.addKey(img)
}

// add counts one value.
func (a *attribute) add(v *change.Value) {
	a.seen++
	a.kinds[v.Kind]++
	switch v.Kind {
	case change.KindNumber:
		if _, err := strconv.ParseInt(v.S, 10, 64); err != nil {
			a.notInt++
		}
		if looksLikeEpoch(v.S) {
			a.times++
		}
	case change.KindString:
		if looksLikeDate(v.S) || looksLikeEpoch(v.S) {
			a.times++
		}
		if isDigits(v.S) {
			a.numbers++
			a.padded[len(v.S)]++
		}
	}
}

// addKey counts the forms and parts of an item's key; keys that are not scalars are left out.
func (s *Sampler) addKey(img change.Image) {
	var parts []string
	var forms pair
	keys := []change.KeyAttr{s.src.Schema.Partition}
	if s.src.Schema.Sort != nil {
		keys = append(keys, *s.src.Schema.Sort)
	}
	for i, k := range keys {
		v := img.Get(k.Name)
		if v == nil {
			return
		}
		text, err := tmpl.Scalar(k.Name, v)
		if err != nil {
			return
		}
		of := form{}
		if k.Type == 'S' {
			of = formOf(text)
		}
		if i == 0 {
			s.addPartition(text)
			forms.pk = of
		} else {
			forms.sk = of
		}
		parts = append(parts, text)
	}
	s.joined[strings.Join(parts, "#")]++
	s.addPair(forms, img)
}

// addPartition counts the first parts of a partition key.
func (s *Sampler) addPartition(text string) {
	part, rest, prefixed := strings.Cut(text, "#")
	s.first[part]++
	if prefixed {
		s.hashes++
	}
	next, _, _ := strings.Cut(rest, "#")
	s.second[part+"#"+next]++
}

func (s *Sampler) addPair(p pair, img change.Image) {
	n := s.pairs[p]
	if n == nil {
		n = &tally{indexed: map[string]int{}}
		s.pairs[p] = n
	}
	n.items++
	for _, x := range s.src.Indexes {
		missing := func(k change.KeyAttr) bool { return img.Get(k.Name) == nil }
		if !slices.ContainsFunc(x.Key, missing) {
			n.indexed[x.Name]++
		}
	}
}

// Proposal is what a sample suggests.
type Proposal struct {
	Mapping  string // a mapping file with comments
	Findings []problem.Problem
}

// Proposal returns a mapping for the table, and what in its data will cause trouble.
func (s *Sampler) Proposal() Proposal {
	_, prefixed := s.kinds()
	return Proposal{Mapping: s.mapping(), Findings: s.findings(prefixed)}
}

// Findings returns what in the table's data will cause trouble with the preset default.
func (s *Sampler) Findings() []problem.Problem { return s.findings(false) }

// findings is Findings; with prefixed, rows begin with a word and the first parts of keys are the
// two after it.
func (s *Sampler) findings(prefixed bool) []problem.Problem {
	ps := &problem.Collector{Table: s.src.Table}
	warn := func(attr, code, hint, format string, args ...any) {
		ps.Warnf(problem.Text{Path: attr}, code, hint, format, args...)
	}
	pk := s.src.Schema.Partition.Name
	first := s.first
	if prefixed {
		first = s.second
	}
	if n := hottest(first); s.items >= minRows && n*5 > s.items && len(first) > 1 {
		warn(pk, "hot_segment", "put a salt or another part first: {salt(pk;16)}#…",
			"%d %% of the items begin with the same first part of the row key", 100*n/s.items)
	}
	for _, name := range slices.Sorted(maps.Keys(s.attrs)) {
		s.attribute(name, warn)
	}
	if s.hashes > 0 && !prefixed {
		warn(pk, "escaped", "a rule of your own with segments: strict or ordered, or captures that split the key",
			"%d %% of partition keys contain '#': written as %%23", 100*s.hashes/s.items)
	}
	if n := s.collisions(); n > 0 {
		warn(pk, "collision", "keep segments: escape",
			"%d row keys of the sample would be the same if keys were joined by '#' without escaping", n)
	}
	if s.wide > 0 {
		warn("", "many_cells", "write the large map as one cell, or the item as a document",
			"%s more than 500 cells", have(s.wide, "item"))
	}
	return ps.List
}

// collisions returns how many joined keys belong to several items.
func (s *Sampler) collisions() (n int) {
	for _, count := range s.joined {
		if count > 1 {
			n++
		}
	}
	return n
}

// attribute reports what the values of one attribute do to keys and cells.
func (s *Sampler) attribute(name string, warn func(attr, code, hint, format string, args ...any)) {
	a := s.attrs[name]
	isPartition := name == s.src.Schema.Partition.Name
	isSort := s.src.Schema.Sort != nil && name == s.src.Schema.Sort.Name
	if isPartition && a.times*2 > a.seen {
		warn(name, "timestamp_first", "put an id with many values first",
			"rows would begin with a time: all new rows go to one place")
	} else if isPartition && (a.kinds[change.KindNumber] == a.seen || a.numbers == a.seen) {
		warn(name, "sequential", "{"+name+"|revstr} spreads sequential numbers",
			"rows would begin with a number: if it grows with time, all new rows go to one place")
	}
	if (isPartition || isSort) && a.kinds[change.KindNumber] > 0 {
		warn(name, "unpadded", "{"+name+"|ordnum} sorts by value", "a number as text: 9 sorts after 10")
	}
	if (isPartition || isSort) && a.numbers > 1 && len(a.padded) > 1 {
		warn(name, "unpadded", "{"+name+"|pad(10)}", "numbers of different lengths as text: 9 sorts after 10")
	}
	kinds := maps.Clone(a.kinds)
	delete(kinds, change.KindNull)
	if len(kinds) > 1 {
		var names []string
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			names = append(names, fmt.Sprintf("%s %d×", k, kinds[k]))
		}
		warn(name, "mixed_types", "types: \"t:types\" keeps each value's type in a family t", "values of several types: %s",
			strings.Join(names, ", "))
	}
	if n := a.kinds[change.KindNumber]; n > 0 && a.notInt > 0 {
		warn(name, "not_int64", "natural encoding (text), or as: int64 with a fallback family",
			"%d of %d numbers are not 64-bit integers", a.notInt, n)
	}
}
