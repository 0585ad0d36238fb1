package stream_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// rig is an engine on a virtual clock, with one table and its stream.
type rig struct {
	t      *testing.T
	clock  *clock.Clock
	ledger *ledger.Ledger
	e      *stream.Engine
	arn    string
}

func newRig(t *testing.T, partitions int) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)),
		ledger: ledger.New(stream.Numbers(1))}
	r.e = stream.New(stream.Options{Clock: r.clock, Ledger: r.ledger, Seed: 1, Partitions: partitions})
	r.arn, _ = r.e.Enable("Orders", "NEW_AND_OLD_IMAGES")
	return r
}

func (r *rig) put(item string, n int) {
	keys := fmt.Appendf(nil, `{"pk":{"S":%q}}`, item)
	c := stream.Change{
		Table: "Orders", Op: "MODIFY", Keys: keys, PartitionKey: []byte(item), ItemKey: keys, SizeBytes: 100,
		New: fmt.Appendf(nil, `{"pk":{"S":%q},"n":{"N":"%d"}}`, item, n),
		Old: fmt.Appendf(nil, `{"pk":{"S":%q},"n":{"N":"%d"}}`, item, n-1),
	}
	if n == 1 {
		c.Op, c.Old = "INSERT", nil
	}
	r.e.Commit(c)
}

// call makes a request and decodes its reply into out; code is "" when it succeeded.
func (r *rig) call(op string, in map[string]any, out any) (code string) {
	r.t.Helper()
	body, _ := json.Marshal(in)
	status, reply := r.e.Handle(op, body)
	if status == 200 {
		if err := json.Unmarshal(reply, out); err != nil {
			r.t.Fatalf("decode reply of %s: %v\n%s", op, err, reply)
		}
		return ""
	}
	var f struct {
		Type string `json:"__type"`
	}
	if err := json.Unmarshal(reply, &f); err != nil {
		r.t.Fatalf("decode error of %s: %v\n%s", op, err, reply)
	}
	_, code, _ = cut(f.Type)
	return code
}

func cut(s string) (string, string, bool) {
	for i := range s {
		if s[i] == '#' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

type shardInfo struct {
	ShardId, ParentShardId string
	SequenceNumberRange    struct{ StartingSequenceNumber, EndingSequenceNumber string }
}

type listing struct {
	StreamDescription struct {
		StreamStatus, LastEvaluatedShardId string
		Shards                             []shardInfo
	}
}

func (r *rig) list(in map[string]any) listing {
	r.t.Helper()
	var all listing
	args := map[string]any{"StreamArn": r.arn}
	for k, v := range in {
		args[k] = v
	}
	for {
		var page listing
		if code := r.call("DescribeStream", args, &page); code != "" {
			r.t.Fatalf("DescribeStream: %s", code)
		}
		all.StreamDescription.Shards = append(all.StreamDescription.Shards, page.StreamDescription.Shards...)
		all.StreamDescription.StreamStatus = page.StreamDescription.StreamStatus
		if page.StreamDescription.LastEvaluatedShardId == "" {
			return all
		}
		last := page.StreamDescription.LastEvaluatedShardId
		if after, _ := args["ExclusiveStartShardId"].(string); last <= after {
			r.t.Fatalf("DescribeStream: the page after %s ends with %s", after, last)
		}
		args["ExclusiveStartShardId"] = last
	}
}

type recordsPage struct {
	NextShardIterator *string
	Records           []struct {
		EventID      string `json:"eventID"`
		EventName    string `json:"eventName"`
		UserIdentity *struct{ Type, PrincipalId string }
		Dynamodb     struct {
			ApproximateCreationDateTime int64
			Keys, NewImage, OldImage    json.RawMessage
			SequenceNumber              string
		} `json:"dynamodb"`
	}
}

func (r *rig) iterator(in map[string]any) (string, string) {
	var out struct{ ShardIterator string }
	args := map[string]any{"StreamArn": r.arn, "ShardIteratorType": "TRIM_HORIZON"}
	for k, v := range in {
		args[k] = v
	}
	code := r.call("GetShardIterator", args, &out)
	return out.ShardIterator, code
}

// drain reads a shard to its present end.
func (r *rig) drain(shard string) (page recordsPage) {
	r.t.Helper()
	it, code := r.iterator(map[string]any{"ShardId": shard})
	if code != "" {
		r.t.Fatalf("GetShardIterator: %s", code)
	}
	for {
		var p recordsPage
		if code := r.call("GetRecords", map[string]any{"ShardIterator": it}, &p); code != "" {
			r.t.Fatalf("GetRecords: %s", code)
		}
		page.Records = append(page.Records, p.Records...)
		page.NextShardIterator = p.NextShardIterator
		if p.NextShardIterator == nil || len(p.Records) == 0 {
			return page
		}
		it = *p.NextShardIterator
	}
}

func TestEveryChangeIsReadOnceInOrder(t *testing.T) {
	r := newRig(t, 4)
	for n := 1; n <= 50; n++ {
		for item := range 40 {
			r.put(fmt.Sprint("item", item), n)
		}
		if n == 20 {
			r.e.Rotate("Orders")
		}
		if n == 30 {
			if _, err := r.e.Split(r.e.OpenShards("Orders")[2], 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	last, total := map[string]int{}, 0
	for _, sh := range r.list(nil).StreamDescription.Shards { // parents come first
		prev := ""
		page := r.drain(sh.ShardId)
		if closed := sh.SequenceNumberRange.EndingSequenceNumber != ""; closed != (page.NextShardIterator == nil) {
			t.Errorf("shard %s closed %v, but next iterator %v", sh.ShardId, closed, page.NextShardIterator)
		}
		for _, rec := range page.Records {
			var img struct {
				Pk struct{ S string }
				N  struct {
					N int `json:",string"`
				}
			}
			if err := json.Unmarshal(rec.Dynamodb.NewImage, &img); err != nil {
				t.Fatal(err)
			}
			if img.N.N != last[img.Pk.S]+1 {
				t.Fatalf("%s: change %d after %d", img.Pk.S, img.N.N, last[img.Pk.S])
			}
			last[img.Pk.S] = img.N.N
			total++
			seq := rec.Dynamodb.SequenceNumber
			if len(seq) < len(prev) || len(seq) == len(prev) && seq <= prev {
				t.Fatalf("sequence number %s after %s", seq, prev)
			}
			prev = seq
		}
	}
	if total != 2000 {
		t.Errorf("%d records, want 2000", total)
	}
}

// deliveries reads every shard to its end, parents first.
func (r *rig) deliveries() (all []ledger.Delivery) {
	r.t.Helper()
	for _, sh := range r.list(nil).StreamDescription.Shards {
		for _, rec := range r.drain(sh.ShardId).Records {
			d := rec.Dynamodb
			all = append(all, ledger.Delivery{
				Table: "Orders", Shard: sh.ShardId, Seq: d.SequenceNumber, Images: ledger.HashImages(d.NewImage, d.OldImage),
			})
		}
	}
	return all
}
