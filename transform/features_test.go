package transform

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/change"
)

// feature is one example of testdata/features.yaml: a mapping, a history of one or more items, and
// what the table holds at the end. docs/mapping/reference.md shows the same examples.
type feature struct {
	Name    string
	Key     []string
	Mapping string
	Steps   []struct{ Old, New string }
	TTL     bool
	Want    map[string]map[string]string
	Refused string
	Class   string
}

func TestFeatures(t *testing.T) {
	data, err := os.ReadFile("testdata/features.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var features []feature
	if err := yaml.Load(data, &features); err != nil {
		t.Fatal(err)
	}
	for _, f := range features {
		t.Run(f.Name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema(f.Key[0], f.Key[1:]...), TTLAttr: "exp"}, f.Mapping)
			if f.Class != "" {
				if got := p.Report()[0].Class; got != f.Class {
					t.Errorf("class %s (%s), want %s", got, p.Report()[0].Why, f.Class)
				}
			}
			m := newModel()
			var refused error
			for i, s := range f.Steps {
				c := step(t, p, int64(1000*(i+1)), s.Old, s.New)
				c.TTL = f.TTL && s.New == ""
				w := new(Write)
				if refused = p.Change(new(change.Decoder), c, w); refused == nil {
					checkWrite(t, w)
					m.apply(t, w)
				}
			}
			if f.Refused != "" {
				if refused == nil || !strings.Contains(refused.Error(), f.Refused) {
					t.Errorf("refusal %v, want %q", refused, f.Refused)
				}
				return
			}
			if refused != nil {
				t.Fatal(refused)
			}
			if diff := cmp.Diff(f.Want, m.shown(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// shown is the table with all versions: row → family:qualifier@time → value; @ is left out where
// the time is the write's version.
func (m *model) shown(p *Program) map[string]map[string]string {
	out := map[string]map[string]string{}
	for key, row := range m.rows {
		for _, c := range row.cells {
			if c.family == LiveFamily || c.family == DeadFamily {
				continue
			}
			k := Readable([]byte(key))
			if out[k] == nil {
				out[k] = map[string]string{}
			}
			column := c.family + ":" + Readable([]byte(c.qual))
			if c.mapped {
				column += fmt.Sprintf("@%d", c.time)
			}
			newestOnly := slices.ContainsFunc(p.Families(), func(f Family) bool {
				return f.Name == c.family &&
					f.MaxVersions == 1
			})
			for _, taken := out[k][column]; taken && !newestOnly; _, taken = out[k][column] {
				column += "+" // another version
			}
			out[k][column] = Readable([]byte(c.value))
		}
	}
	return out
}
