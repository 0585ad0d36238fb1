package describe

import (
	"strings"
	"testing"

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
	p, problems := transform.Compile(transform.Table{Source: "Votes", Target: "votes",
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}, Mapping: m})
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

const votes = `
families: {n: {max_versions: 3, max_age: 36h, combine: intersection}, hi: {aggregate: max}, all: {max_versions: all}}
rules:
- {name: shard, match: {pk: "{cand}.{shard:d}"}, row: "{cand}",
  cells: [{attr: votes, to: "n:{shard|pad(3)}", as: int64}, {attr: top, to: "hi:top", as: int64, ts: "0"},
    {attr: note, to: "all:{shard}"}]}
- {name: rest, match: {pk: "{x}"}, drop: true}
reads:
- {name: total, row: "{cand}", family: n, fold: sum, except: ["000"]}
views:
- {name: by_note, key: ["all:7"], columns: []}
`

func TestViewsAreDefinedInBigtablesSQL(t *testing.T) {
	v := transform.View{Name: "by_state",
		Key:     []transform.Column{{Family: "d", Qualifier: "state"}, {Family: "x", Qualifier: "who's"}},
		Columns: []transform.Column{{Family: "x", Qualifier: "state"}, {Family: "d", Qualifier: "source_key"}}}
	want := "SELECT `d`['state'] AS `state`, `x`['who\\'s'] AS `who_s`, _key AS `source_key`, `x`['state'] AS " +
		"`x_state`, `d`['source_key'] AS `d_source_key` " +
		"FROM `votes` WHERE `d`['state'] IS NOT NULL AND `x`['who\\'s'] IS NOT NULL ORDER BY `state`, `who_s`, `source_key`"
	if diff := cmp.Diff(want, Query("votes", v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDictionaryNamesEntitiesColumnsAndReads(t *testing.T) {
	var d change.Decoder
	img, err := d.Image([]byte(`{"pk":{"S":"A.7"},"votes":{"N":"5"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := Dictionary(program(t, votes), []change.Image{img})
	for _, want := range []string{"## Votes → votes", "| rule shard | pk: \"{cand}.{shard:d}\" | `{cand}` | K (by-key):",
		"attr: votes → n:{shard\\|pad(3)} (as int64)", "dropped on purpose",
		"| `n` | the newest 3 versions, or what is younger than 36h |", "| `hi` | one aggregate per column (max) |",
		"| `all` | all versions |",
		"| by_note | SELECT `all`['7'] AS `7`, _key AS `source_key` FROM `votes` WHERE",
		"| total | row `{cand}` | n without 000 | sum |", "| `A` | `n:007` | 0x0000000000000005 (int64 5) |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the dictionary lacks %q:\n%s", want, got)
		}
	}
}
