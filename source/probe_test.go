package source

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// answers to a request that reads at a time, which show nothing about whether the server knows
// times.
var unrelated = map[string]*wireReply{
	"500":     {status: 500, body: `{"__type":"InternalServerError","message":"try again"}`},
	"HTML":    {body: "<html>503 Service Unavailable</html>"},
	"{}":      {body: "{}"},
	"cut":     {body: `{"ShardIterator":"abcdefghijklmnopqrstuvwxyz"}`, cut: 20},
	"expired": refuse("ExpiredIteratorException", "The iterator has expired"),
	"busy":    refuse("ThrottlingException", "Rate exceeded"),
	"unknown": refuse("ResourceNotFoundException", "Shard does not exist"),
	"denied":  refuse("AccessDeniedException", "no"),
}

// timed reports whether a call reads at a time, or at an iterator that was given for one.
func timed(c wireCall, op string) bool {
	iterator, _ := c.in["ShardIterator"].(string)
	return c.op == op && (c.kind == "AT_TIMESTAMP" || iterator == "timed")
}

// TestOnlyARefusalShowsThatTimesAreUnknown: at GetShardIterator as at GetRecords, any other answer
// is asked again. If it stays, it is an error and decides nothing.
func TestOnlyARefusalShowsThatTimesAreUnknown(t *testing.T) {
	for _, op := range []string{"GetShardIterator", "GetRecords"} {
		for name, reply := range unrelated {
			for _, times := range []int{1, -1} {
				synctest.Test(t, func(t *testing.T) {
					known, err := startsAtTimes(t, op, times, reply)
					class := Classify(err)
					switch {
					case known && err == nil && times == 1: // asked again, or another shard
					case !known && err != nil && class != failure.Canceled && (times < 0 || class == failure.Denied):
					default:
						t.Errorf("%s at %s, %d times: %v, %v", name, op, times, known, err)
					}
				})
			}
		}
	}
}

// startsAtTimes asks a server that answers an operation so many times with a reply, -1: always,
// where it reads at a time.
func startsAtTimes(t *testing.T, op string, times int, reply *wireReply) (bool, error) {
	w := newWire()
	w.shard(shardID(1), "", 1)
	w.shard(shardID(2), "", 1)
	w.script = func(c wireCall) *wireReply {
		switch {
		case timed(c, op) && times != 0:
			times--
			again := *reply
			return &again
		case timed(c, "GetShardIterator"):
			return &wireReply{body: `{"ShardIterator":"timed"}`}
		case timed(c, "GetRecords"):
			return &wireReply{body: `{"Records":[],"NextShardIterator":"x"}`}
		}
		return nil
	}
	s := open(t, w)
	l, err := s.List(t.Context(), "arn")
	if err != nil {
		t.Fatal(err)
	}
	return s.StartsAtTimes(t.Context(), l, change.MillisOf(time.Now().Add(-time.Minute)))
}

// TestRefusalOfTimesIsConfirmed: a server that refuses them does so twice, and reads from the trim
// horizon.
func TestRefusalOfTimesIsConfirmed(t *testing.T) {
	for _, code := range []string{"ValidationException", "UnknownOperationException"} {
		for _, op := range []string{"GetShardIterator", "GetRecords"} {
			refusal := refuse(code, "Invalid ShardIteratorType")
			if known, err := startsAtTimes(t, op, -1, refusal); known || err != nil {
				t.Errorf("%s at %s: %v, %v", code, op, known, err)
			}
			if known, err := startsAtTimes(t, op, 1, refusal); !known || err != nil {
				t.Errorf("%s at %s, once: %v, %v", code, op, known, err)
			}
		}
	}
}

// TestDeadShardsDoNotHideTheStream: a listing shows shards that are gone, with an end and without,
// before those that are read.
func TestDeadShardsDoNotHideTheStream(t *testing.T) {
	w := newWire()
	for i := range 5 {
		w.shard(shardID(i), "", 0).end = seq(i)
	}
	w.shard(shardID(5), "", 1)
	w.shard(shardID(6), "", 0)
	gone := map[string]bool{shardID(0): true, shardID(1): true, shardID(6): true}
	w.script = func(c wireCall) *wireReply {
		if gone[c.shard] {
			return refuse("ResourceNotFoundException", "Shard does not exist")
		}
		return nil
	}
	s := open(t, w)
	if err := s.MayRead(t.Context(), "arn"); err != nil {
		t.Error(err)
	}
	for i := range 7 {
		gone[shardID(i)] = true
	}
	if err := s.MayRead(t.Context(), "arn"); Classify(err) != failure.Gone {
		t.Errorf("no shard can be read: %v", err)
	}
	w.script = func(c wireCall) *wireReply {
		if c.op == "GetRecords" {
			return refuse("AccessDeniedException", "no")
		}
		return nil
	}
	if err := s.MayRead(t.Context(), "arn"); Classify(err) != failure.Denied {
		t.Error(err)
	}
}
