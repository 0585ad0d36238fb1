package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
	"github.com/tailrace-cdc/replicator/transform"
)

// mapping is one of the mappings that histories draw. Their qualifiers or row keys name the sort
// key of the item, so that it is plain to which item a cell belongs.
type mapping struct {
	name    string
	program *transform.Program
}

const mappingHead = "mapping: 1\nsegments: escape\nfamilies: {d: {max_versions: 1}, e: {max_versions: 1}}\nrules:\n"

// mappings are the classes of rows, and items that move between rows.
var mappings = compiled(
	"R", `- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`,
	"K", `- {name: k, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "d:{s}/y"}]}`,
	"D", `- {name: d, match: {pk: "{p}", sk: "{s}"}, row: "{p}",
    cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}`,
	"D moves", `- {name: m, match: {pk: "{p}", sk: "{s}"}, row: "{site}#{p}",
    cells: [{attrs: all, except: [pk, sk, site], to: "d:{s}/{attr}"}]}`,
	"index moves", `- {name: i, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
    cells: [{attr: x, to: "d:x"}, {attr: y, to: "d:y"}],
    index: [{name: j, row: "i#{site}#{p}#{s}", cells: [{attr: x, to: "e:x"}]}]}`,
)

// compiled compiles pairs of a name and the rules of a mapping.
func compiled(pairs ...string) (all []mapping) {
	key := func(name string) change.KeyAttr { return change.KeyAttr{Name: name, Type: 'S'} }
	sort := key("sk")
	for i := 0; i < len(pairs); i += 2 {
		m, problems := transform.ParseMapping(pairs[i], []byte(mappingHead+pairs[i+1]+"\n"))
		var p *transform.Program
		if m != nil {
			var more []transform.Problem
			p, more = transform.Compile(transform.Table{
				Pipeline: "p", Source: "T", Target: "t", Schema: change.KeySchema{Partition: key("pk"), Sort: &sort}, Mapping: m,
			})
			problems = append(problems, more...)
		}
		if p == nil {
			panic(fmt.Sprint(pairs[i], problems))
		}
		all = append(all, mapping{pairs[i], p})
	}
	return all
}

// families are the families of the mappings.
var families = []string{"d", "e"}

// project returns what a plain reader should see of an item, by row.
func (m *mapping) project(w *World, image []byte) map[string]string {
	w.dec.Reset()
	img, err := w.dec.Image(image)
	w.must(err)
	rows, err := m.program.Project(img)
	w.must(err)
	seen := make(map[string]string, len(rows))
	for i := range rows {
		var cells []string
		for _, c := range rows[i].Cells {
			cells = append(cells, c.Family+":"+string(c.Qualifier)+"="+string(c.Value))
		}
		slices.Sort(cells)
		seen[string(rows[i].Key)] = strings.Join(cells, " ")
	}
	return seen
}

// seen returns what a plain reader gets of an item in a row.
func (w *World) seen(x *item, row string) string {
	return w.target.Seen(row, func(qualifier string) bool { return owns(x, row, qualifier) })
}

// owns reports whether a cell of a row belongs to an item.
func owns(x *item, row, qualifier string) bool {
	return strings.HasSuffix(row, "#"+x.sk) || strings.HasPrefix(qualifier, x.sk+"/")
}

// rowsNaming returns the rows that hold a guard of an item or cells of it, sorted.
func (w *World) rowsNaming(x *item) (rows [][]byte) {
	for _, key := range slices.Sorted(maps.Keys(w.target.Rows)) {
		if slices.ContainsFunc(w.target.Rows[key].Cells, func(c cells.Cell) bool {
			return owns(x, key, c.Qualifier) || c.Qualifier == w.guardOf(x)
		}) {
			rows = append(rows, []byte(key))
		}
	}
	return rows
}

// guardOf returns the qualifier of an item's guards in shared rows.
func (w *World) guardOf(x *item) string {
	var write transform.Write
	name, err := w.mapping.program.ItemOf(&w.dec, x.keys, &write)
	w.must(err)
	return string(name.Guard[:])
}
