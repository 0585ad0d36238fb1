package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

func TestIteratorsExpire(t *testing.T) {
	r := newRig(t, 1)
	r.put("a", 1)
	it := r.mustIterate(map[string]any{"ShardId": r.only()})
	r.clock.Advance(15 * time.Minute)
	_, code := r.records(it)
	wantCode(t, "at 15 minutes", code, "")
	r.clock.Advance(time.Second)
	_, code = r.records(it)
	wantCode(t, "after 15 minutes", code, "ExpiredIteratorException")
	r.e.Faults().IteratorTTL(time.Second)
	it = r.mustIterate(map[string]any{"ShardId": r.only()})
	r.clock.Advance(2 * time.Second)
	_, code = r.records(it)
	wantCode(t, "after a short life", code, "ExpiredIteratorException")
}

func TestDataIsTrimmedAfterADay(t *testing.T) {
	r := newRig(t, 1)
	r.put("a", 1)
	parent := r.only()
	old := r.drain(parent).Records[0].Dynamodb.SequenceNumber
	r.e.Faults().IteratorTTL(48 * time.Hour)
	held := r.mustIterate(map[string]any{"ShardId": parent})
	r.clock.Advance(20 * time.Hour)
	r.put("a", 2)
	r.e.Rotate("Orders")
	r.clock.Advance(5 * time.Hour)

	_, code := r.records(held)
	wantCode(t, "iterator from before the trim", code, "TrimmedDataAccessException")
	_, code = r.iterator(map[string]any{"ShardId": parent, "ShardIteratorType": "AT_SEQUENCE_NUMBER",
		"SequenceNumber": old})
	wantCode(t, "trimmed number", code, "TrimmedDataAccessException")
	_, code = r.iterator(map[string]any{"ShardId": parent, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
		"SequenceNumber": old})
	wantCode(t, "after the newest trimmed number nothing is lost", code, "")
	if got := r.drain(parent).Records; len(got) != 1 {
		t.Errorf("%d records left, want 1", len(got))
	}

	r.clock.Advance(20 * time.Hour) // wholly trimmed, still listed
	_, code = r.records(r.mustIterate(map[string]any{"ShardId": parent}))
	wantCode(t, "wholly trimmed shard", code, "TrimmedDataAccessException")
	r.clock.Advance(10 * time.Hour) // gone; its child's parent dangles
	_, code = r.iterator(map[string]any{"ShardId": parent})
	wantCode(t, "gone shard", code, "ResourceNotFoundException")
	left := r.list(nil).StreamDescription.Shards
	if len(left) != 1 || left[0].ParentShardId != parent {
		t.Errorf("listing %+v", left)
	}
	r.e.Sweep()
	if again := r.list(nil).StreamDescription.Shards; len(again) != 1 {
		t.Errorf("listing after the sweep %+v", again)
	}
}

func TestDisabledStreamStaysReadableUnderItsARN(t *testing.T) {
	r := newRig(t, 2)
	r.put("a", 1)
	r.e.Disable("Orders")
	r.put("a", 2) // lost to the stream
	arn, _ := r.e.Enable("Orders", "KEYS_ONLY")
	r.put("a", 3)
	if arn == r.arn {
		t.Error("the new stream has the old ARN")
	}
	d := r.list(nil).StreamDescription
	records := 0
	for _, sh := range d.Shards {
		p := r.drain(sh.ShardId)
		records += len(p.Records)
		if p.NextShardIterator != nil || sh.SequenceNumberRange.EndingSequenceNumber == "" {
			t.Errorf("shard %s of a disabled stream is open", sh.ShardId)
		}
	}
	if records != 1 || d.StreamStatus != "DISABLED" {
		t.Errorf("%d records, status %s", records, d.StreamStatus)
	}
	if all, streamed := r.ledger.Count("Orders"); all != 3 || streamed != 2 {
		t.Errorf("ledger: %d changes, %d streamed", all, streamed)
	}
	r.arn = arn
	for _, sh := range r.list(nil).StreamDescription.Shards {
		for _, rec := range r.drain(sh.ShardId).Records {
			if rec.Dynamodb.NewImage != nil || rec.Dynamodb.OldImage != nil {
				t.Errorf("KEYS_ONLY record has images")
			}
		}
	}
	var both struct{ Streams []struct{ StreamArn string } }
	r.call("ListStreams", map[string]any{"TableName": "Orders"}, &both)
	if len(both.Streams) != 2 {
		t.Errorf("streams %v", both.Streams)
	}
	r.clock.Advance(30 * time.Hour)
	r.e.Sweep()
	r.call("ListStreams", map[string]any{}, &both)
	if len(both.Streams) != 1 || both.Streams[0].StreamArn != arn {
		t.Errorf("streams after a day %v", both.Streams)
	}
}

func TestReadingFaultsOnCommand(t *testing.T) {
	r := newRig(t, 2)
	r.put("a", 1)
	r.put("b", 1)
	hot, calm := r.e.OpenShards("Orders")[0], r.e.OpenShards("Orders")[1]
	faults := r.e.Faults()
	it, other := r.mustIterate(map[string]any{"ShardId": hot}), r.mustIterate(map[string]any{"ShardId": calm})

	faults.ThrottleShard(hot, "ProvisionedThroughputExceededException", 2, 0)
	for i, want := range []string{"ProvisionedThroughputExceededException", "ProvisionedThroughputExceededException", ""} {
		_, code := r.records(it)
		wantCode(t, fmt.Sprint("throttled call ", i), code, want)
		_, code = r.records(other)
		wantCode(t, fmt.Sprint("other shard's call ", i), code, "")
	}
	faults.ThrottleShard(hot, "ThrottlingException", 0, 0.001)
	for i, want := range []string{"", "ThrottlingException"} {
		_, code := r.records(it)
		wantCode(t, fmt.Sprint("rated call ", i), code, want)
	}
	faults.Calm()
	faults.EmptyPages(hot, 2)
	for i := range 3 {
		p, _ := r.records(it)
		if empty := len(p.Records) == 0; empty != (i < 2) || p.NextShardIterator == nil {
			t.Errorf("page %d: %d records", i, len(p.Records))
		}
	}
	faults.ReadersPerShard(2)
	second, third := r.mustIterate(map[string]any{"ShardId": hot}), r.mustIterate(map[string]any{"ShardId": hot})
	for i, c := range []struct{ it, want string }{{it, ""}, {second, ""}, {third, "LimitExceededException"}, {it, ""}} {
		_, code := r.records(c.it)
		wantCode(t, fmt.Sprint("reader ", i), code, c.want)
	}
}

func TestLatestWithSlackReturnsOlderRecords(t *testing.T) {
	r := newRig(t, 1)
	for n := 1; n <= 3; n++ {
		r.put("a", n)
		r.clock.Advance(2 * time.Second)
	}
	r.e.Faults().LatestSlack(3 * time.Second)
	p, _ := r.records(r.mustIterate(map[string]any{"ShardId": r.only(), "ShardIteratorType": "LATEST"}))
	if len(p.Records) != 1 {
		t.Errorf("%d records, want 1", len(p.Records))
	}
}

func TestTTLDeleteCarriesTheServicesIdentity(t *testing.T) {
	r := newRig(t, 1)
	c := change(1, 10)
	c.Op, c.New = "REMOVE", nil
	r.e.Commit(c)
	c.TTL = true
	r.e.Commit(c)
	got := r.drain(r.only()).Records
	if got[0].UserIdentity != nil || got[1].UserIdentity == nil ||
		got[1].UserIdentity.PrincipalId != "dynamodb.amazonaws.com" || got[1].UserIdentity.Type != "Service" {
		t.Errorf("records %+v", got)
	}
	if got[0].Dynamodb.NewImage != nil || got[0].Dynamodb.OldImage == nil {
		t.Errorf("REMOVE has images %+v", got[0])
	}
}

func TestCreationTimesComeInThreeSpellings(t *testing.T) {
	r := newRig(t, 1)
	it := r.mustIterate(map[string]any{"ShardId": r.only()})
	for n, f := range []stream.TimeFormat{stream.Seconds, stream.Fraction, stream.Exponent} {
		r.e.Faults().RecordTimes(f)
		r.put("a", n+1)
	}
	_, reply := r.e.Handle("GetRecords", fmt.Appendf(nil, `{"ShardIterator":%q}`, it))
	for _, want := range []string{":1795262400,", ":1795262400.000,", ":1.7952624E9,"} {
		if strings.Count(string(reply), `"ApproximateCreationDateTime"`+want) != 1 {
			t.Errorf("no creation time %s in %s", want, reply)
		}
	}
}

func TestTenThousandShardsAreListedAndSplit(t *testing.T) {
	r := newRig(t, 10000)
	for i := range 2000 {
		r.put(fmt.Sprint("item", i), 1)
	}
	if n := r.e.Rotate(""); n != 10000 {
		t.Errorf("rotated %d", n)
	}
	shards := r.list(nil).StreamDescription.Shards
	if len(shards) != 20000 {
		t.Fatalf("%d shards listed", len(shards))
	}
	for i := 1; i < len(shards); i++ {
		if shards[i].ShardId[:28] < shards[i-1].ShardId[:28] {
			t.Fatalf("ids do not sort by creation: %s after %s", shards[i].ShardId, shards[i-1].ShardId)
		}
	}
}

func TestStreamsSurviveARestart(t *testing.T) {
	r := newRig(t, 3)
	for n := 1; n <= 100; n++ {
		r.put(fmt.Sprint("item", n%9), n)
	}
	r.e.Rotate("Orders")
	var file strings.Builder
	if err := r.e.Save(&file); err != nil {
		t.Fatal(err)
	}
	before := r.list(nil).StreamDescription.Shards
	again := stream.New(stream.Options{Clock: r.clock, Seed: 99})
	if err := again.Restore(strings.NewReader(file.String())); err != nil {
		t.Fatal(err)
	}
	r.e = again
	after := r.list(nil).StreamDescription.Shards
	if len(before) != len(after) || before[0] != after[0] {
		t.Errorf("shards %v, want %v", after, before)
	}
	r.put("item1", 101)
	records, newest := 0, ""
	for _, sh := range after {
		for _, rec := range r.drain(sh.ShardId).Records {
			records++
			if strings.Contains(string(rec.Dynamodb.NewImage), `"101"`) {
				newest = rec.Dynamodb.SequenceNumber
			}
		}
		if start := sh.SequenceNumberRange.StartingSequenceNumber; newest != "" && len(newest) == len(start) &&
			newest <= start {
			t.Errorf("sequence number %s of a new record is below its shard's start %s", newest, start)
		}
	}
	if records != 101 {
		t.Errorf("%d records, want 101", records)
	}
}

func TestSplitKeepsItemsInTheirLineage(t *testing.T) {
	r := newRig(t, 3)
	at := map[string]string{} // item: shard of its newest record
	for n := 1; n <= 6; n++ {
		for i := range 60 {
			r.put(fmt.Sprint("item", i), n)
		}
		parents := map[string]string{}
		for _, sh := range r.list(nil).StreamDescription.Shards {
			parents[sh.ShardId] = sh.ParentShardId
		}
		now := map[string]string{}
		r.ledger.Changes("Orders", func(c ledger.Change) bool {
			now[c.Item] = c.Shard
			return true
		})
		used := map[string]bool{}
		for item, shard := range now {
			used[shard] = true
			for was := at[item]; was != "" && shard != was; shard = parents[shard] {
				if shard == "" {
					t.Fatalf("round %d: %s left the lineage of %s", n, item, was)
				}
			}
		}
		if n > 2 && len(used) < 4 {
			t.Errorf("round %d: all items are on %d shards", n, len(used))
		}
		at = now
		open := r.e.OpenShards("Orders")
		if _, err := r.e.Split(open[n%len(open)], 1+n%3); err != nil {
			t.Fatal(err)
		}
	}
}
