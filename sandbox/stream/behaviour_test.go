package stream_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func (r *rig) records(iterator string) (recordsPage, string) {
	r.t.Helper()
	var p recordsPage
	code := r.call("GetRecords", map[string]any{"ShardIterator": iterator}, &p)
	return p, code
}

// mustIterate calls iterator and ends the test when it fails.
func (r *rig) mustIterate(in map[string]any) string {
	r.t.Helper()
	it, code := r.iterator(in)
	if code != "" {
		r.t.Fatalf("GetShardIterator %v: %s", in, code)
	}
	return it
}

func (r *rig) only() string { return r.e.OpenShards("Orders")[0] }

func wantCode(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: code %q, want %q", what, got, want)
	}
}

func TestIteratorTypesStartWhereTheyShould(t *testing.T) {
	r := newRig(t, 1)
	for n := 1; n <= 5; n++ {
		r.put("a", n)
		r.clock.Advance(10 * time.Second)
	}
	all := r.drain(r.only()).Records
	third := all[2].Dynamodb
	info := r.list(nil).StreamDescription.Shards[0]
	for name, c := range map[string]struct {
		in   map[string]any
		want int
	}{
		"trim horizon": {map[string]any{}, 5},
		"latest":       {map[string]any{"ShardIteratorType": "LATEST"}, 0},
		"at": {map[string]any{"ShardIteratorType": "AT_SEQUENCE_NUMBER",
			"SequenceNumber": third.SequenceNumber}, 3},
		"after": {map[string]any{"ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
			"SequenceNumber": third.SequenceNumber}, 2},
		"shard's start": {map[string]any{"ShardIteratorType": "AT_SEQUENCE_NUMBER",
			"SequenceNumber": info.SequenceNumberRange.StartingSequenceNumber}, 5},
		"timestamp": {map[string]any{"ShardIteratorType": "AT_TIMESTAMP",
			"Timestamp": third.ApproximateCreationDateTime}, 3},
		"timestamp + 1ms": {map[string]any{"ShardIteratorType": "AT_TIMESTAMP",
			"Timestamp": float64(third.ApproximateCreationDateTime) + 0.001}, 2},
		"old timestamp": {map[string]any{"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1}, 5},
	} {
		c.in["ShardId"] = r.only()
		p, code := r.records(r.mustIterate(c.in))
		if code != "" || len(p.Records) != c.want || p.NextShardIterator == nil {
			t.Errorf("%s: %d records (%s), want %d and a next iterator", name, len(p.Records), code, c.want)
		}
	}
	if third.ApproximateCreationDateTime%10 != 0 || all[0].EventID == all[1].EventID || len(all[0].EventID) != 32 {
		t.Errorf("record %+v", all[0])
	}
}

func TestRequestsThatTheServiceRefuses(t *testing.T) {
	r := newRig(t, 1)
	r.put("a", 1)
	shard := r.only()
	at := func(kind string, more ...any) map[string]any {
		in := map[string]any{"StreamArn": r.arn, "ShardId": shard, "ShardIteratorType": kind}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return in
	}
	it := r.mustIterate(map[string]any{"ShardId": shard})
	for name, c := range map[string]struct {
		op   string
		in   map[string]any
		want string
	}{
		"short arn":   {"DescribeStream", map[string]any{"StreamArn": "arn"}, "ValidationException"},
		"no arn":      {"DescribeStream", map[string]any{}, "ValidationException"},
		"strange arn": {"DescribeStream", map[string]any{"StreamArn": strings.Repeat("x", 50)}, "ValidationException"},
		"unknown arn": {"DescribeStream", map[string]any{"StreamArn": r.arn + "1"}, "ResourceNotFoundException"},
		"limit 0":     {"DescribeStream", map[string]any{"StreamArn": r.arn, "Limit": 0}, "ValidationException"},
		"limit 101":   {"ListStreams", map[string]any{"Limit": 101}, "ValidationException"},
		"malformed start": {"ListStreams", map[string]any{"ExclusiveStartStreamArn": strings.Repeat("x", 50)},
			"ValidationException"},
		"short start": {"ListStreams", map[string]any{"ExclusiveStartStreamArn": "arn:aws"}, "ValidationException"},
		"filter": {"DescribeStream", map[string]any{"StreamArn": r.arn,
			"ShardFilter": map[string]any{"Type": "X"}}, "ValidationException"},
		"type":      {"GetShardIterator", at("PANDA"), "ValidationException"},
		"no number": {"GetShardIterator", at("AT_SEQUENCE_NUMBER"), "ValidationException"},
		"number for oldest": {"GetShardIterator", at("TRIM_HORIZON", "SequenceNumber", strings.Repeat("1", 21)),
			"ValidationException"},
		"number for latest": {"GetShardIterator", at("LATEST", "SequenceNumber", strings.Repeat("1", 21)),
			"ValidationException"},
		"no decimal": {"GetShardIterator", at("AT_SEQUENCE_NUMBER", "SequenceNumber", "12x"), "ValidationException"},
		"future": {"GetShardIterator", at("AT_TIMESTAMP", "Timestamp", r.clock.Now().Unix()+5),
			"ValidationException"},
		"unknown shard": {"GetShardIterator", at("LATEST", "ShardId", strings.Repeat("s", 30)),
			"ResourceNotFoundException"},
		"short shard": {"GetShardIterator", at("LATEST", "ShardId", "s"), "ValidationException"},
		"iterator":    {"GetRecords", map[string]any{"ShardIterator": "nonsense"}, "ValidationException"},
		"forged": {"GetRecords", map[string]any{"ShardIterator": it[:len(it)-8] + "AAAAAAA="},
			"ValidationException"},
		"limit 1001": {"GetRecords", map[string]any{"ShardIterator": it, "Limit": 1001}, "ValidationException"},
		"no records": {"GetRecords", map[string]any{"ShardIterator": it, "Limit": 0}, "ValidationException"},
		"unknown op": {"PutRecords", map[string]any{}, "UnknownOperationException"},
		"wrong json": {"GetRecords", map[string]any{"ShardIterator": 1}, "SerializationException"},
		"beyond the end": {"GetShardIterator", at("AFTER_SEQUENCE_NUMBER", "SequenceNumber", strings.Repeat("9", 40)),
			"ValidationException"},
	} {
		wantCode(t, name, r.call(c.op, c.in, nil), c.want)
	}
}

func TestPagesEndAtOneMegabyteOrAThousandRecords(t *testing.T) {
	r := newRig(t, 1)
	for range 1500 {
		r.e.Commit(change(1, 10))
	}
	it := r.mustIterate(map[string]any{"ShardId": r.only()})
	p, _ := r.records(it)
	if len(p.Records) != 1000 {
		t.Errorf("%d records, want 1000", len(p.Records))
	}
	p, _ = r.records(*p.NextShardIterator)
	if len(p.Records) != 500 {
		t.Errorf("%d records, want 500", len(p.Records))
	}
	for range 3 {
		r.e.Commit(change(1, 300<<10)) // 600 KiB a record
	}
	for range 3 {
		if p, _ = r.records(*p.NextShardIterator); len(p.Records) != 1 {
			t.Errorf("%d large records on a page, want 1", len(p.Records))
		}
	}
}

func TestFalseEndsHideWhatFollows(t *testing.T) {
	r := newRig(t, 1)
	r.put("a", 1)
	at := map[string]any{"ShardId": r.only()}
	for n, want := range map[int]int{2: 2, -1: 5} {
		before := r.e.Faults().FalseEnded()
		r.e.Faults().FalseEnds(r.only(), n)
		for i := range 5 {
			p, code := r.records(r.mustIterate(at))
			if ended := len(p.Records) == 0 && p.NextShardIterator == nil; code != "" || ended != (i < want) {
				t.Errorf("%d false ends, page %d: %d records, next %v (%s)", n, i, len(p.Records), p.NextShardIterator, code)
			}
		}
		if got := r.e.Faults().FalseEnded() - before; got != want {
			t.Errorf("%d served, want %d", got, want)
		}
		r.e.Faults().Calm()
		if p, _ := r.records(r.mustIterate(at)); len(p.Records) != 1 {
			t.Errorf("%d records after calm", len(p.Records))
		}
	}
}

func TestClosedShardEndsWithItsLastRecords(t *testing.T) {
	r := newRig(t, 1)
	r.put("a", 1)
	parent := r.only()
	it := r.mustIterate(map[string]any{"ShardId": parent})
	r.e.Rotate("Orders")
	p, _ := r.records(it)
	if len(p.Records) != 1 || p.NextShardIterator != nil {
		t.Errorf("last page: %d records, next %v", len(p.Records), p.NextShardIterator)
	}
	r.e.Faults().LateEnd(true)
	p, _ = r.records(it)
	if len(p.Records) != 1 || p.NextShardIterator == nil {
		t.Fatalf("page before a late end: %d records, next %v", len(p.Records), p.NextShardIterator)
	}
	if p, _ = r.records(*p.NextShardIterator); len(p.Records) != 0 || p.NextShardIterator != nil {
		t.Errorf("late end: %d records, next %v", len(p.Records), p.NextShardIterator)
	}
}

func TestChildShardsFilterAndPaging(t *testing.T) {
	r := newRig(t, 7)
	parent := r.only()
	children, err := r.e.Split(parent, 3)
	if err != nil {
		t.Fatal(err)
	}
	got := r.list(map[string]any{"Limit": 1, "ShardFilter": map[string]any{"Type": "CHILD_SHARDS",
		"ShardId": parent}}).StreamDescription.Shards
	slices.Sort(children)
	var listed []string
	for _, sh := range got {
		listed = append(listed, sh.ShardId)
	}
	if diff := cmp.Diff(children, listed); diff != "" || got[0].ParentShardId != parent {
		t.Errorf("children of %s: %+v%s", parent, got, diff)
	}
	r.e.Faults().ListPage(2)
	var first listing
	r.call("DescribeStream", map[string]any{"StreamArn": r.arn}, &first)
	if len(first.StreamDescription.Shards) != 2 || len(r.list(nil).StreamDescription.Shards) != 10 {
		t.Errorf("first page %d shards, all %d", len(first.StreamDescription.Shards),
			len(r.list(nil).StreamDescription.Shards))
	}
}

// TestListingIsSortedByIdAndGoesOnAfterAnyId pages through generations of siblings, also from a
// removed shard.
func TestListingIsSortedByIdAndGoesOnAfterAnyId(t *testing.T) {
	r := newRig(t, 8)
	for range 3 {
		if _, err := r.e.Split(r.e.OpenShards("Orders")[0], 5); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(in map[string]any) (all []string) {
		for _, sh := range r.list(in).StreamDescription.Shards {
			all = append(all, sh.ShardId)
		}
		return all
	}
	whole := ids(nil)
	if len(whole) != 8+3*5 || !slices.IsSorted(whole) {
		t.Errorf("%d shards, want 23 sorted by id: %v", len(whole), whole)
	}
	for limit := 1; limit <= len(whole); limit++ {
		if diff := cmp.Diff(whole, ids(map[string]any{"Limit": limit})); diff != "" {
			t.Errorf("pages of %d: %s", limit, diff)
		}
	}
	for i, id := range whole {
		neighbour := id[:len(id)-1] + string(id[len(id)-1]+1) // no shard has this id, and it sorts right behind
		if diff := cmp.Diff(whole[i+1:], ids(map[string]any{"ExclusiveStartShardId": neighbour}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after %s: %s", neighbour, diff)
		}
	}
}

func TestListOfStreamsGoesOnAfterOneThatIsGone(t *testing.T) {
	r := newRig(t, 1)
	names := []string{"Orders", "Zebra", "Apple", "Mango"}
	for _, name := range names[1:] {
		r.e.Enable(name, "KEYS_ONLY")
	}
	list := func(after string) (out struct {
		Streams                []struct{ StreamArn, TableName string }
		LastEvaluatedStreamArn string
	}) {
		in := map[string]any{"Limit": 2}
		if after != "" {
			in["ExclusiveStartStreamArn"] = after
		}
		if code := r.call("ListStreams", in, &out); code != "" {
			t.Fatalf("ListStreams: %s", code)
		}
		return out
	}
	first := list("")
	r.e.Drop(first.Streams[1].TableName)
	r.clock.Advance(30 * time.Hour)
	r.e.Sweep()
	rest := list(first.LastEvaluatedStreamArn)
	var got []string
	for _, s := range append(first.Streams, rest.Streams...) {
		got = append(got, s.TableName)
	}
	slices.Sort(got)
	slices.Sort(names)
	if diff := cmp.Diff(names, got); diff != "" {
		t.Error(diff)
	}
}

func TestListingLiesOnCommand(t *testing.T) {
	r := newRig(t, 1)
	faults := r.e.Faults()
	parent := r.only()
	faults.HideChildren(5 * time.Second)
	faults.OpenParents(8 * time.Second)
	r.e.Rotate("Orders")
	child := r.only()
	look := func(want string) {
		t.Helper()
		got := ""
		for _, sh := range r.list(nil).StreamDescription.Shards {
			name := map[string]string{parent: "parent", child: "child"}[sh.ShardId]
			if sh.SequenceNumberRange.EndingSequenceNumber == "" {
				name += " open"
			}
			got += name + "; "
		}
		if got != want {
			t.Errorf("listing %q, want %q", got, want)
		}
	}
	look("parent open; ")
	r.clock.Advance(6 * time.Second)
	look("parent open; child open; ")
	r.clock.Advance(3 * time.Second)
	look("parent; child open; ")
	faults.DropParents(true)
	look("child open; ")
	faults.Calm()
	faults.DropShard(child, true)
	look("parent; ")
	faults.Calm()
	look("parent; child open; ")
}
