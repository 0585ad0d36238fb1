package checkpoint

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/change"
)

// earlierState is a state as a build stored it in which Shard was itself what snapshots hold, with
// what that build answered about it. Together they have every combination of phase and flags that
// the simulated histories lead to.
type earlierState struct {
	State     json.RawMessage          `json:"state"`
	Watermark change.Millis            `json:"watermark"`
	Applied   change.Millis            `json:"applied"`
	Highest   change.Version           `json:"highest"`
	Counts    [4]int                   `json:"counts"`
	Missing   []string                 `json:"missing"`
	Gapped    []string                 `json:"gapped"`
	Readable  []string                 `json:"readable"`
	Complete  map[string]change.Millis `json:"complete"`
	Childless bool                     `json:"childless"`
}

func readEarlierStates(t testing.TB) (all []earlierState) {
	t.Helper()
	packed, err := os.ReadFile("testdata/states.jsonl.s2")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := s2.Decode(nil, packed)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(lines)); d.More(); {
		var one earlierState
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestStoredStatesOfAnEarlierBuildAreReadAndWrittenAsBefore: the same answers, and the same bytes
// when stored again.
func TestStoredStatesOfAnEarlierBuildAreReadAndWrittenAsBefore(t *testing.T) {
	all := readEarlierStates(t)
	if len(all) != 29 {
		t.Fatalf("%d states", len(all))
	}
	for i, want := range all {
		s, err := decodeState(want.State)
		if err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		again, err := encodeState(s)
		if err != nil || !bytes.Equal(again, want.State) {
			t.Errorf("state %d: stored again %v: %s", i, err, cmp.Diff(string(want.State), string(again)))
		}
		got := earlierState{
			State: want.State, Watermark: s.ReadWatermark(), Applied: s.AppliedWatermark(), Highest: s.HighestVersion(),
			Missing: s.MissingParents(), Gapped: s.GappedShards(), Complete: map[string]change.Millis{},
			Childless: s.AwaitsChildren(),
		}
		got.Counts[0], got.Counts[1], got.Counts[2], got.Counts[3] = s.ShardCounts()
		for id, sh := range s.Shards {
			if s.Readable(sh) {
				got.Readable = append(got.Readable, id)
			}
			got.Complete[id] = s.CompleteUntil(sh)
		}
		slices.Sort(got.Readable)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("state %d: %s", i, d)
		}
	}
}

// TestShardsAreWrittenAsPackageJSONWritesAMap: shards are encoded one by one, whatever text is in
// their IDs and around them.
func TestShardsAreWrittenAsPackageJSONWritesAMap(t *testing.T) {
	s := NewState()
	s.Owner = `"shards":{"":null}`
	odd := []string{"b", `a",":{"":null}`, "<&>\u2028", `{"id":"c","stream":`, "\n", "é", ""}
	for _, shards := range [][]string{nil, {"a"}, odd} {
		want := storedState{Owner: s.Owner, Shards: map[string]*storedShard{}}
		for _, id := range shards {
			s.Shards[id] = &Shard{ID: id, Stream: `,"stream":` + id, Parent: "p", Phase: PhaseEarly}
			stored := s.Shards[id].stored()
			want.Shards[id] = &stored
		}
		a, errA := json.Marshal(&want)
		b, errB := encodeState(s)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%q: %v, %v: %s", shards, errA, errB, cmp.Diff(string(a), string(b)))
		}
		clear(s.Shards)
	}
}
