package describe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

func program(t *testing.T, mapping string) *transform.Program {
	t.Helper()
	m, problems := transform.ParseMapping("m.yaml", []byte(mapping))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, problems := transform.Compile(transform.Table{Source: "Votes", Target: "votes", Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}, Mapping: m})
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

const votes = `
families: {n: {max_versions: 3, max_age: 36h, combine: intersection}, hi: {aggregate: max}, all: {max_versions: all}}
rules:
- {name: shard, match: {pk: "{cand}.{shard:d}"}, row: "{cand}", cells: [{attr: votes, to: "n:{shard|pad(3)}", as: int64}, {attr: top, to: "hi:top", as: int64}, {attr: note, to: "all:{shard}"}]}
- {name: rest, match: {pk: "{x}"}, drop: true}
reads:
- {name: total, row: "{cand}", family: n, fold: sum}
`

func TestSchemaAsCommands(t *testing.T) {
	got := CBT(Schema([]*transform.Program{program(t, votes)}, 7*24*time.Hour, map[string][][]byte{"votes": {[]byte("g"), []byte("a,b"), []byte("p")}}))
	want := `cbt createtable votes 'splits=g,p'
cbt createfamily votes _tr_live
cbt setgcpolicy votes _tr_live maxversions=1
cbt createfamily votes _tr_dead
cbt setgcpolicy votes _tr_dead maxage=7d
cbt createfamily votes n
cbt setgcpolicy votes n maxversions=3 and maxage=36h
cbt createfamily votes hi:intmax
cbt setgcpolicy votes hi never
cbt createfamily votes all
cbt setgcpolicy votes all never
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDictionaryTellsEntitiesColumnsAndReads(t *testing.T) {
	var d change.Decoder
	img, err := d.Image([]byte(`{"pk":{"S":"A.7"},"votes":{"N":"5"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := Dictionary(program(t, votes), []change.Image{img})
	for _, want := range []string{"## Votes → votes", "| rule shard | pk: \"{cand}.{shard:d}\" | `{cand}` | K:", "attr: votes → n:{shard\\|pad(3)} (as int64)", "dropped on purpose",
		"| `n` | maxversions=3 and maxage=36h |", "| total | row `{cand}` | n | sum |", "| `A` | `n:007` | 0x0000000000000005 (int64 5) |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the dictionary lacks %q:\n%s", want, got)
		}
	}
}
