package bigtable

import (
	"encoding/binary"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// tb is what helpers need of a test, so that rapid's T will do.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sent reads a request as a server does.
func sent(t tb, r *request) *btpb.CheckAndMutateRowRequest {
	t.Helper()
	data, err := codec{}.Marshal(r)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	raw := data.Materialize()
	data.Free()
	if len(raw) != r.size() {
		t.Fatalf("%d bytes, the size says %d", len(raw), r.size())
	}
	m := new(btpb.CheckAndMutateRowRequest)
	if err := (proto.UnmarshalOptions{}).Unmarshal(raw, m); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		t.Fatalf("unknown fields: %v", m)
	}
	return m
}

// generated is the request in the generated messages.
func generated(r *request) *btpb.CheckAndMutateRowRequest {
	chain := func(family string) *btpb.RowFilter {
		column := &btpb.ColumnRange{FamilyName: family,
			StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: r.guard.qualifier},
			EndQualifier: &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: append(append([]byte{}, r.guard.qualifier...),
				0)}}
		since := &btpb.TimestampRange{StartTimestampMicros: int64(r.guard.version * 1000)}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
			{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: column}},
			{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: since}},
		}}}}
	}
	m := &btpb.CheckAndMutateRowRequest{TableName: r.table, AppProfileId: r.profile, RowKey: r.key,
		PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{
			Filters: []*btpb.RowFilter{chain("_tr_live"), chain("_tr_dead")}}}}}
	for i := range r.skip {
		m.TrueMutations = append(m.TrueMutations, r.skip[i].generated())
	}
	for i := range r.body {
		m.FalseMutations = append(m.FalseMutations, r.body[i].generated())
	}
	return m
}

func (o *op) generated() *btpb.Mutation {
	switch o.kind {
	case opSet:
		return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: o.family, ColumnQualifier: o.qualifier, Value: o.value, TimestampMicros: o.from * 1000}}}
	case opDeleteColumn:
		d := &btpb.Mutation_DeleteFromColumn{FamilyName: o.family, ColumnQualifier: o.qualifier}
		if o.from != 0 || o.to != 0 {
			d.TimeRange = &btpb.TimestampRange{StartTimestampMicros: o.from * 1000, EndTimestampMicros: o.to * 1000}
		}
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: d}}
	case opDeleteFamily:
		family := &btpb.Mutation_DeleteFromFamily{FamilyName: o.family}
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: family}}
	case opDeleteRow:
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{FamilyName: o.family,
		ColumnQualifier: &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: o.qualifier}},
		Timestamp:       &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: o.from * 1000}},
		Input:           &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: int64(binary.BigEndian.Uint64(o.value))}}}}}
}

func drawOps(t *rapid.T, name string) (ops []op) {
	family, column := rapid.SampledFrom([]string{"d", "history"}), rapid.SliceOfN(rapid.Byte(), 0, 300)
	ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, maxVersion-1))
	for range rapid.IntRange(0, 6).Draw(t, name) {
		o := op{kind: opKind(rapid.IntRange(1, 5).Draw(t, "kind")), family: family.Draw(t, "family"),
			qualifier: column.Draw(t, "column"), from: ms.Draw(t, "from")}
		switch o.kind {
		case opDeleteRow:
			o = op{kind: opDeleteRow}
		case opDeleteFamily:
			o = op{kind: opDeleteFamily, family: o.family}
		case opDeleteColumn:
			o.to = ms.Draw(t, "to")
		case opSet:
			o.value = rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "value")
		case opAdd:
			o.value = binary.BigEndian.AppendUint64(nil, uint64(rapid.Int64().Draw(t, "number")))
		}
		ops = append(ops, o)
	}
	return ops
}

// TestRequestIsWhatTheGeneratedCodeWouldSend covers small requests and those that go through pooled
// buffers.
func TestRequestIsWhatTheGeneratedCodeWouldSend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &request{table: "projects/p/instances/i/tables/t",
			profile: rapid.SampledFrom([]string{"", "tailrace"}).Draw(t, "profile"),
			key:     rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "key"), body: drawOps(t, "body"), skip: drawOps(t, "skip"),
			guard: predicate{rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "guard"),
				change.Version(rapid.Int64Range(0, maxVersion-1).Draw(t, "version"))}}
		if diff := cmp.Diff(generated(r), sent(t, r), protocmp.Transform()); diff != "" {
			t.Fatalf("(-generated +sent):\n%s", diff)
		}
	})
}

func TestPredicateOfTheCallerReplacesTheGuard(t *testing.T) {
	filter := cellValue(stateQualifier, []byte("stored"))
	raw, err := proto.Marshal(filter)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filter, sent(t, &request{filter: raw}).PredicateFilter, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestAnswerIsReadAndGarbageIsAnError(t *testing.T) {
	c := codec{encoding.GetCodecV2(grpcproto.Name)}
	for _, matched := range []bool{true, false} {
		raw, err := proto.Marshal(&btpb.CheckAndMutateRowResponse{PredicateMatched: matched})
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, 0x7a, 2, 'x', 'y') // a field that a later version of the service may have
		r := &request{matched: !matched}
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, r); err != nil || r.matched != matched {
			t.Errorf("matched %v: %v, %v", matched, r.matched, err)
		}
	}
	for _, raw := range [][]byte{{0x08}, {0x7a, 5, 'x'}, {0xff}} {
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, new(request)); err == nil {
			t.Errorf("% x is taken for an answer", raw)
		}
	}
	message := &btpb.MutateRowRequest{TableName: "t"}
	data, err := c.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	back := new(btpb.MutateRowRequest)
	if err := c.Unmarshal(data, back); err != nil || !proto.Equal(message, back) {
		t.Errorf("another message: %v, %v", back, err)
	}
}

// TestLargeRowGoesThroughWhole is more than one frame of HTTP/2 and more than gRPC's pooled buffers
// start with.
func TestLargeRowGoesThroughWhole(t *testing.T) {
	test := func(t *testing.T, c *Client) {
		createTables(t, c)
		w := own("large", 1)
		w.Rows[0].Left = false
		want := map[string]string{}
		for _, q := range []string{"a", "b", "c"} {
			value := make([]byte, 300<<10)
			for i := range value {
				value[i] = q[0] + byte(i%7)
			}
			w.Rows[0].Cells = append(w.Rows[0].Cells, transform.Cell{Family: "d", Qualifier: []byte(q), Value: value})
			want["large d:"+q] = string(value)
		}
		mustApply(t, c, w)
		if diff := cmp.Diff(want, plain(t, c)); diff != "" {
			t.Error("the row is not what was sent")
		}
	}
	everyServer(t, test)
}
