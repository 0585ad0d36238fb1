package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// TestAgainstAServer runs the conformance part against any server, DynamoDB Local for one:
// TAILRACE_TEST_DYNAMODB=http://127.0.0.1:8000 go test -run TestAgainstAServer ./source
func TestAgainstAServer(t *testing.T) {
	endpoint := os.Getenv("TAILRACE_TEST_DYNAMODB")
	if endpoint == "" {
		t.Skip("TAILRACE_TEST_DYNAMODB names no server")
	}
	conform(t, open(t, endpoint))
}

// createTable makes a table with a stream and a composite key.
func createTable(t *testing.T, s testSource, name string) TableInfo {
	t.Helper()
	_, err := s.tables.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: dbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []dbtypes.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"},
			{AttributeName: aws.String("n"), AttributeType: "N"}},
		KeySchema: []dbtypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"},
			{AttributeName: aws.String("n"), KeyType: "RANGE"}},
		StreamSpecification: &dbtypes.StreamSpecification{StreamEnabled: aws.Bool(true),
			StreamViewType: dbtypes.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	var info TableInfo
	eventually(t, "the table is active", func() bool {
		info, err = s.Table(t.Context(), name)
		return err == nil && info.Status == "ACTIVE"
	})
	return info
}

// eventually waits for a fact.
func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !fact(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		if err := failure.Pause(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func hardItem(i int) map[string]dbtypes.AttributeValue {
	s := func(v string) dbtypes.AttributeValue { return &dbtypes.AttributeValueMemberS{Value: v} }
	n := func(v string) dbtypes.AttributeValue { return &dbtypes.AttributeValueMemberN{Value: v} }
	return map[string]dbtypes.AttributeValue{
		"pk": s(fmt.Sprintf("k\"\\\n\t/é€😀<>&#%d", i%5)), "n": n(fmt.Sprint(i)),
		"nul\x00name": s("x"), "co:lon": s("a:b"), "ha#sh": s("#"), "emoji😀": s("😀"), "empty": s(""),
		"null": &dbtypes.AttributeValueMemberNULL{Value: true}, "yes": &dbtypes.AttributeValueMemberBOOL{Value: true},
		"big": n("12345678901234567890123456789012345678"), "tiny": n("1E-130"), "neg": n("-9.99E+125"),
		"b":  &dbtypes.AttributeValueMemberB{Value: []byte{0, 1, 255}},
		"ss": &dbtypes.AttributeValueMemberSS{Value: []string{"x", "y\x01"}},
		"ns": &dbtypes.AttributeValueMemberNS{Value: []string{"1", "2.5"}},
		"bs": &dbtypes.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}},
		"m": &dbtypes.AttributeValueMemberM{Value: map[string]dbtypes.AttributeValue{
			"l": &dbtypes.AttributeValueMemberL{Value: []dbtypes.AttributeValue{n("1"), s(""),
				&dbtypes.AttributeValueMemberNULL{Value: true}}},
			"e": &dbtypes.AttributeValueMemberM{Value: map[string]dbtypes.AttributeValue{}},
		}},
		"text": s(strings.Repeat("lorem ", 100)),
	}
}

// conform writes items, reads them back by stream, scan and key, and compares each way with the
// SDK's own.
func conform(t *testing.T, s testSource) {
	const items = 20
	info := createTable(t, s, fmt.Sprintf("conform-%d", time.Now().UnixNano()))
	if info.ARN == "" || info.StreamARN == "" || !info.Streaming || info.View != "NEW_AND_OLD_IMAGES" ||
		info.Schema.Sort == nil || info.Schema.Sort.Type != 'N' || info.Schema.Partition.Name != "pk" {
		t.Fatalf("%+v", info)
	}
	for i := range items {
		if _, err := s.tables.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &info.Name, Item: hardItem(i)}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.List(t.Context(), info.StreamARN)
	if err != nil || !l.Complete || len(l.Shards) == 0 || l.Started == 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	total := 0
	for _, sh := range l.Shards {
		total += compareShard(t, s, info, sh)
	}
	if total != items {
		t.Errorf("%d records of %d", total, items)
	}
	compareScan(t, s, info, items)
}

func compareShard(t *testing.T, s testSource, info TableInfo, sh Shard) int {
	t.Helper()
	it, err := s.streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &info.StreamARN,
		ShardId: &sh.ID, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	r := s.NewReader(Start{Feed: change.Feed{Stream: info.StreamARN, Shard: sh.ID}, Table: info.Name, Schema: info.Schema})
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	if len(want.Records) > 0 {
		compareRecords(t, want.Records, p.Records)
		again := s.NewReader(Start{Feed: p.Feed, Table: info.Name, Schema: info.Schema,
			Position: change.Position{After: change.SequenceNumber(p.Records[0].SequenceNumber)}, Clock: p.Records[0].Version})
		defer again.Close()
		rest := next(t, again)
		defer rest.Release()
		if len(rest.Records) != len(p.Records)-1 || rest.Clock != p.Clock {
			t.Errorf("after the first of %d records come %d; clock %d and %d", len(p.Records), len(rest.Records), p.Clock,
				rest.Clock)
		}
	}
	compareTimed(t, s, info, p)
	return len(p.Records)
}

// compareTimed starts an hour ago. Some servers take such an iterator and then fail to read from
// it.
func compareTimed(t *testing.T, s testSource, info TableInfo, p *Page) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	timed := s.NewReader(Start{Feed: p.Feed, Table: info.Name, Schema: info.Schema,
		Position: change.Position{At: change.MillisOf(time.Now().Add(-time.Hour))}})
	defer timed.Close()
	all, err := timed.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Log("the server cannot read from a time")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer all.Release()
	if len(all.Records) != len(p.Records) {
		t.Errorf("%d records since an hour ago, %d in all", len(all.Records), len(p.Records))
	}
}

func compareScan(t *testing.T, s testSource, info TableInfo, items int) {
	t.Helper()
	seen := map[string]bool{}
	for segment := range 2 {
		for page, err := range s.Scan(t.Context(), info.Name, segment, 2) {
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range page.Items {
				var d change.Decoder
				img, err := d.Image(raw)
				if err != nil {
					t.Fatal(err)
				}
				key, err := info.Schema.Canonical(nil, img)
				if err != nil {
					t.Fatal(err)
				}
				seen[string(key)] = true
				got, err := s.Item(t.Context(), info.Name, key)
				if err != nil || len(decoded(t, got)) != len(img) {
					t.Fatalf("item %s: %v, %v", key, got, err)
				}
			}
		}
	}
	if len(seen) != items {
		t.Errorf("%d items of %d", len(seen), items)
	}
	for _, n := range []int{1, items, items + 1} {
		sampled := 0
		for page, err := range s.Sample(t.Context(), info.Name, n) {
			if err != nil {
				t.Fatal(err)
			}
			sampled += len(page.Items)
		}
		if sampled < min(n, items) || sampled > items {
			t.Errorf("a sample of %d of %d items has %d", n, items, sampled)
		}
	}
	none, err := s.Item(t.Context(), info.Name, []byte(`{"pk":{"S":"none"},"n":{"N":"1"}}`))
	if none != nil || err != nil {
		t.Errorf("an item that is not there: %s, %v", none, err)
	}
	for _, err := range s.Scan(t.Context(), "no-such-table", 0, 1) {
		if Classify(err) != failure.Gone {
			t.Errorf("%v: %v", Classify(err), err)
		}
	}
	if _, err := s.Table(t.Context(), "no-such-table"); Classify(err) != failure.Gone || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
