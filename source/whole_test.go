package source

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

const (
	tableReply = `{"Table":{"TableName":"T","TableStatus":"ACTIVE","TableArn":"arn:table/T","TableId":"1",` +
		`"LatestStreamArn":"arn","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],` +
		`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}`
	exportReply = `{"ExportDescription":{"ExportArn":"e","ExportStatus":"COMPLETED","TableArn":"arn:table/T"}}`
	shardReply  = `{"StreamDescription":{"StreamStatus":"ENABLED","Shards":[{"ShardId":"s"}]}}`
)

// TestIncompleteReplyIsNoAnswer: a reply with status 200 that lacks what every reply has is asked
// for again, and is Transient if it stays so: for each call whose reply is decoded.
func TestIncompleteReplyIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		op    string
		whole string
		parts []string // further incomplete replies, beside {}
		call  func(t *testing.T, s *Source) error
	}{
		"table": {"DescribeTable", tableReply, []string{
			`{"Table":null}`, `{"Table":{}}`,
			strings.Replace(tableReply, `"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],`, "", 1),
			strings.Replace(tableReply, `"TableStatus":"ACTIVE",`, "", 1),
		}, func(t *testing.T, s *Source) error { _, err := s.Table(t.Context(), "T"); return err }},
		"ttl": {"DescribeTimeToLive", `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`, []string{
			`{"TimeToLiveDescription":{}}`,
		}, func(t *testing.T, s *Source) error { _, err := s.ttl(t.Context(), "T"); return err }},
		"tables": {"ListTables", `{"TableNames":[]}`, nil,
			func(t *testing.T, s *Source) error { _, err := s.ListTables(t.Context()); return err }},
		"backups": {"DescribeContinuousBackups", `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED"}}`,
			[]string{`{"ContinuousBackupsDescription":{}}`},
			func(t *testing.T, s *Source) error { _, err := s.PointInTime(t.Context(), "T"); return err }},
		"start export": {"ExportTableToPointInTime", exportReply, []string{`{"ExportDescription":{}}`},
			func(t *testing.T, s *Source) error {
				_, err := s.StartExport(t.Context(), ExportRequest{TableARN: "a", Bucket: "b"})
				return err
			}},
		"export": {"DescribeExport", exportReply, []string{
			`{"ExportDescription":{}}`, strings.Replace(exportReply, `"ExportStatus":"COMPLETED",`, "", 1),
		}, func(t *testing.T, s *Source) error { _, err := s.ExportStatus(t.Context(), "e"); return err }},
		"exports": {"ListExports", `{"ExportSummaries":[{"ExportArn":"e"}]}`, []string{`{"ExportSummaries":[{}]}`},
			func(t *testing.T, s *Source) error { _, err := s.ListExports(t.Context(), "arn:table/T"); return err }},
		"shards": {"DescribeStream", shardReply, []string{
			`{"StreamDescription":null}`, `{"StreamDescription":{}}`, `{"StreamDescription":{"StreamStatus":"ENABLED"}}`,
			strings.Replace(shardReply, `"ShardId":"s"`, "", 1),
		}, func(t *testing.T, s *Source) error { _, err := s.List(t.Context(), "arn"); return err }},
		"bulk loads": {"ListBulkOperations", `{"BulkOperationsSummaryList":[]}`, nil,
			func(t *testing.T, s *Source) error { _, err := s.BulkLoads(t.Context()); return err }},
		"may read": {"DescribeStream", shardReply, []string{`{"StreamDescription":{}}`},
			func(t *testing.T, s *Source) error { return s.MayRead(t.Context(), "arn") }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reply := range append(c.parts, `{}`) {
				synctest.Test(t, func(t *testing.T) { testIncomplete(t, c.op, reply, c.whole, c.call) })
			}
		})
	}
}

// testIncomplete answers the operation with an incomplete reply always, and then once.
func testIncomplete(t *testing.T, op, reply, whole string, call func(t *testing.T, s *Source) error) {
	w, left := newWire(), -1
	w.shard("s", "", 1)
	w.script = func(c wireCall) *wireReply {
		if c.op != op {
			return nil
		}
		if left != 0 {
			left--
			return &wireReply{body: reply}
		}
		return &wireReply{body: whole}
	}
	s := open(t, w)
	err := call(t, s.Source)
	bad := (*raw.MalformedError)(nil)
	if Classify(err) != failure.Transient || !errors.As(err, &bad) || !strings.Contains(err.Error(), "the reply has no ") {
		t.Fatalf("%s: %v, class %v", reply, err, Classify(err))
	}
	if Hint(err) != hintMalformed {
		t.Errorf("%s: hint %q", reply, Hint(err))
	}
	if left = 1; op == "DescribeStream" {
		_ = failure.Pause(t.Context(), time.Minute)
	}
	if err := call(t, s.Source); err != nil {
		t.Errorf("%s, once: %v", reply, err)
	}
}

// TestIteratorWithoutATextIsNoAnswer: a reply of GetShardIterator without an iterator shows nothing
// about a shard.
func TestIteratorWithoutATextIsNoAnswer(t *testing.T) {
	w := newWire()
	w.script = func(c wireCall) *wireReply { return &wireReply{body: `{}`} }
	s := open(t, w)
	exists, err := s.Exists(t.Context(), change.Feed{Stream: "arn", Shard: "s"}, "t")
	if exists || Classify(err) != failure.Transient {
		t.Errorf("%v, %v", exists, err)
	}
}
