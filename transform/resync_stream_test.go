package transform

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// resyncMappings are mappings beside the worked examples in which a resync has something to lose.
var resyncMappings = map[string]string{
	"histories, one item a row": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, except: [pk, sk, y], to: "h:{attr}"}, {attr: y, to: "d:y"}]}`,
	"histories, by key": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attr: x, to: "h:{s}/x"}, {attr: y, to: "d:{s}/y"}]}`,
	"histories, by difference": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attrs: all, except: [pk, sk, y], to: "h:{s}/{attr}"}, {attr: y, to: "d:{s}/y"}]}`,
	"ages": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, except: [pk, sk, y], to: "aged:{attr}"}, {attr: y, to: "d:y"}]}`,
	"two rules, two rows": `- {name: a, match: {pk: "{p}", sk: "{s}", x: {exists: true}}, row: "a#{p}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}
- {name: b, match: {pk: "{p}", sk: "{s}"}, row: "b#{p}#{s}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`,
	"two rules, one row": `- {name: a, match: {pk: "{p}", sk: "{s}", x: {exists: true}}, row: "{p}",
    cells: [{attr: y, to: "d:{s}/y"}, {attr: x, to: "h:{s}/x"}]}
- {name: b, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{attrs: all, except: [pk, sk], to: "e:{s}/{attr}"}]}`,
	"index rows": `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: y, to: "d:y"}],
    index: [{name: i, match: {x: {exists: true}}, row: "i#{p}#{s}", cells: [{attr: x, to: "d:x"}]},
      {name: j, row: "j#{y}#{p}#{s}", cells: [{attr: x, to: "d:x"}]}]}`,
}

const resyncFamilies = "segments: escape\nfamilies: {d: {}, e: {}, h: {max_versions: 3}, " +
	"aged: {max_versions: 1, max_age: 400d, combine: union}}\nrules:\n"

// eachResync runs the scenarios of the worked examples, and those above.
func eachResync(t *testing.T, f func(t *rapid.T, p *Program, s scenario, h history)) {
	eachScenario(t, f)
	for name, rules := range resyncMappings {
		s := scenario{keys: two("pk,sk", "a|1", "a|2", "b|1"), body: strings3}
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, resyncFamilies+rules)
			rapid.Check(t, func(t *rapid.T) { f(t, p, s, drawHistory(t, p, s.keys, s.body)) })
		})
	}
}

// strings3 draws some of three attributes.
func strings3(t *rapid.T, _ string) string {
	var out string
	for _, name := range []string{"x", "y", "z"} {
		if rapid.Bool().Draw(t, name) {
			out += `,"` + name + `":{"S":"` + rapid.SampledFrom([]string{"1", "2", ""}).Draw(t, name+" value") + `"}`
		}
	}
	if out == "" {
		return ""
	}
	return out[1:]
}

// page is an item as it was read at a moment of the stream.
type page struct {
	key, item string
	read      change.Version // the newest change that the reading may have seen
}

// stream is a history that is applied while items are read and resynced beside it.
type stream struct {
	p     *Program
	m     *model
	s     scenario
	items map[string]string
	pages []page
	last  change.Version
}

// change applies a change, and reads an item at times.
func (x *stream) change(t *rapid.T, c *change.Change, lost bool) {
	if !lost {
		x.m.apply(t, writeOf(t, x.p, c))
	}
	for _, key := range x.s.keys {
		if slices.Equal(keysOf(t, x.p, []byte("{"+key+"}")), keysOf(t, x.p, imageOf(c))) {
			if x.items[key] = string(c.New); c.New == nil {
				delete(x.items, key)
			}
		}
	}
	x.last = c.Version
	if rapid.IntRange(0, 2).Draw(t, "read") == 0 {
		key := rapid.SampledFrom(x.s.keys).Draw(t, "page")
		x.pages = append(x.pages, page{key: key, item: x.items[key], read: c.Version})
	}
}

func imageOf(c *change.Change) []byte {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// put resyncs the page that was read first, at the time of its reading less a margin.
func (x *stream) put(t *rapid.T) {
	pg := x.pages[0]
	x.pages = x.pages[1:]
	margin := rapid.Int64Range(0, 6).Draw(t, "margin")
	r := resyncOf(t, x.p, pg.key, pg.item, int64(pg.read)-margin)
	r.First = rapid.Bool().Draw(t, "first")
	x.m.resync(t, x.p, r)
}

// TestResyncBesideTheStreamIsNeverSeen: pages are read at any moment and put later, when all
// changes that they may have seen are applied (the caller waits for that) and more have come. A
// reader who polls after each step sees what the stream alone would show: no step back, no mix, no
// item back from the dead; and histories have the same versions.
func TestResyncBesideTheStreamIsNeverSeen(t *testing.T) {
	eachResync(t, func(t *rapid.T, p *Program, s scenario, h history) {
		x := &stream{p: p, m: newModel(), s: s, items: map[string]string{}}
		alone := newModel()
		poll := func(what string) {
			if diff := cmp.Diff(alone.plain(s.siblings), x.m.plain(s.siblings)); diff != "" {
				t.Fatalf("after %s (-stream alone +with resyncs):\n%s", what, diff)
			}
			if diff := cmp.Diff(alone.histories(p), x.m.histories(p), cmp.AllowUnexported(modelCell{})); diff != "" {
				t.Fatalf("versions after %s (-stream alone +with resyncs):\n%s", what, diff)
			}
		}
		for _, c := range h.changes {
			alone.apply(t, writeOf(t, p, c))
			x.change(t, c, false)
			poll("a change")
			for len(x.pages) > 0 && rapid.Bool().Draw(t, "put") {
				x.put(t)
				poll("a put")
			}
		}
		for len(x.pages) > 0 {
			x.put(t)
			poll("a late put")
		}
	})
}

// histories are all versions in families that keep or age them.
func (m *model) histories(p *Program) map[string][]modelCell {
	out := map[string][]modelCell{}
	for key, row := range m.rows {
		for _, c := range row.cells {
			if slices.ContainsFunc(p.prog.FamilyRules, func(f *ir.FamilyRule) bool {
				return f.Name == c.family && (f.History || f.MaxAge > 0)
			}) {
				out[key] = append(out[key], c)
			}
		}
		slices.SortFunc(out[key], compareCells)
	}
	return out
}

// TestResyncHealsBesideTheStream: changes are lost in a gap while pages are read and put; at the
// end each item is resynced above everything, with the rows that a difference names.
func TestResyncHealsBesideTheStream(t *testing.T) {
	eachResync(t, func(t *rapid.T, p *Program, s scenario, h history) {
		x := &stream{p: p, m: newModel(), s: s, items: map[string]string{}}
		images := map[string][]string{}
		for _, c := range h.changes {
			for _, img := range [][]byte{c.Old, c.New} {
				if img != nil {
					k := string(keysOf(t, p, img))
					images[k] = append(images[k], string(img))
				}
			}
			x.change(t, c, rapid.IntRange(0, 2).Draw(t, "lost") == 0)
			for len(x.pages) > 0 && rapid.Bool().Draw(t, "put") {
				x.put(t)
			}
		}
		open := false
		for round := range int64(2) {
			for i, key := range s.keys {
				r := resyncOf(t, p, key, h.items[key], late+round*100+int64(i))
				r.Rows = rowsOf(t, p, images[string(r.Keys)]...)
				w := x.m.resync(t, p, r)
				open = open || len(r.Unproven) > 0 || r.Kept > 0
				for _, row := range w.Rows {
					if row.Left && row.Class != ClassD {
						continue // named, and replaced without being read
					}
					if round > 0 && s.siblings == nil && slices.ContainsFunc(r.Held, func(h HeldRow) bool {
						return string(h.Key) == string(row.Key)
					}) {
						t.Fatalf("row %q was read and is healed, but it is written again", row.Key)
					}
				}
			}
		}
		if !open {
			expectEqual(t, p, x.m, h, s.siblings)
		}
	})
}
