package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// keySpace is a key space that is divided into shards: begins[i] is where shard i begins.
type keySpace struct {
	begins []uint32
	shards []string
}

func equalKeySpace(n int) *keySpace {
	s := &keySpace{}
	for i := range n {
		s.begins, s.shards = append(s.begins, uint32(i*(1<<32/n))), append(s.shards, fmt.Sprint("s", i))
	}
	return s
}

func (s *keySpace) shard(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key + "salt"))
	x := h.Sum32() * 2654435761
	i := 0
	for i+1 < len(s.begins) && s.begins[i+1] <= x {
		i++
	}
	return s.shards[i]
}

// split replaces shard i by two children.
func (s *keySpace) split(i int) {
	end := uint64(1 << 32)
	if i+1 < len(s.begins) {
		end = uint64(s.begins[i+1])
	}
	middle := uint32((uint64(s.begins[i]) + end) / 2)
	name := s.shards[i]
	s.begins = slices.Insert(s.begins, i+1, middle)
	s.shards = slices.Replace(s.shards, i, i+1, name+"a", name+"b")
}

// round writes what is due; every record comes out. It returns how many were written, and the
// shards without any.
func (s *keySpace) round(p *HeartbeatPlanner) (written int, without []string) {
	p.Open(s.shards)
	got := map[string]bool{}
	for _, key := range p.due() {
		written++
		got[s.shard(key)] = true
		p.Seen(s.shard(key), []change.Heartbeat{{Key: key}})
	}
	for _, sh := range s.shards {
		if !got[sh] {
			without = append(without, sh)
		}
	}
	return written, without
}

// TestEachOpenShardGetsAHeartbeat: of many and few shards, again after splits, and then no more
// keys than shards.
func TestEachOpenShardGetsAHeartbeat(t *testing.T) {
	for _, n := range []int{1, 4, 30, 300} {
		s, p := equalKeySpace(n), NewHeartbeatPlanner(heartbeat.Keys{Prefix: "_tr#"})
		settle := func(when string) {
			t.Helper()
			for range 40 {
				if written, without := s.round(p); len(without) == 0 && written == len(s.shards) {
					return
				}
			}
			written, without := s.round(p)
			t.Fatalf("%d shards, %s: %d written, %d without", n, when, written, len(without))
		}
		settle("at first")
		tried := p.tried
		for range 3 {
			s.split(n / 2)
			settle("after a split")
		}
		if p.tried < tried || p.tried > triesAtLeast+triesPerShard*(n+3) {
			t.Errorf("%d shards: %d keys tried, %d before the splits", n, p.tried, tried)
		}
	}
}

// TestUnseenKeysAreWrittenAgainBeforeNewOnes: while nothing is read, the number of keys does not
// grow.
func TestUnseenKeysAreWrittenAgainBeforeNewOnes(t *testing.T) {
	p := NewHeartbeatPlanner(heartbeat.Keys{Prefix: "_"})
	p.Open([]string{"a", "b"})
	first := p.due()
	for range 10 {
		if again := p.due(); !slices.Equal(first, again) {
			t.Fatalf("%v after %v", again, first)
		}
	}
	if len(first) != 4 {
		t.Errorf("%v", first)
	}
}

// TestListOfKeysMayBeTooShort: then shards stay without, and no key that is taken is written.
func TestListOfKeysMayBeTooShort(t *testing.T) {
	p := NewHeartbeatPlanner(heartbeat.Keys{List: []string{"1", "2"}})
	p.Open([]string{"a", "b", "c"})
	if due := p.due(); !slices.Equal(due, []string{"1", "2"}) {
		t.Fatal(due)
	}
	p.Seen("a", []change.Heartbeat{{Key: "1"}, {Key: "2"}})
	if due := p.due(); !slices.Equal(due, []string{"1"}) {
		t.Fatal(due)
	}
	p.skip("1")
	if due := p.due(); !slices.Equal(due, []string{"2"}) {
		t.Fatal(due)
	}
}

// TestFailedWritesAreOneWarning: they are tried again, and a user's item is left alone.
func TestFailedWritesAreOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		p := NewHeartbeatPlanner(heartbeat.Keys{Prefix: "_"})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		denied, writes := true, map[string]int{}
		done := make(chan error)
		go func() {
			done <- p.Run(ctx, 10*time.Second, zap.New(core), func(_ context.Context, key string) error {
				mu.Lock()
				defer mu.Unlock()
				if writes[key]++; denied {
					return errors.New("denied")
				}
				if key == "_0" {
					return source.ErrNotHeartbeat
				}
				p.Seen("a", []change.Heartbeat{{Key: key}})
				return nil
			})
		}()
		p.Open([]string{"a"})
		synctest.Wait()
		mu.Lock()
		first := writes["_0"]
		mu.Unlock()
		if first != 1 {
			t.Fatal("nothing was written when a shard opened")
		}
		time.Sleep(35 * time.Second) //nolint:forbidigo // of the bubble of synctest: it takes no time
		mu.Lock()
		denied = false
		mu.Unlock()
		time.Sleep(100 * time.Second) //nolint:forbidigo // likewise
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if logged.FilterField(zap.String("code", HeartbeatCode)).Len() != 1 || logged.Len() != 2 {
			t.Errorf("logged %v", logged.All())
		}
		if writes["_0"] > 6 || writes["_1"] < 10 {
			t.Errorf("writes %v", writes)
		}
	})
}

// TestOnlyOtherShardsAreNews: heartbeats are written at once when shards open, and not each time
// they are listed.
func TestOnlyOtherShardsAreNews(t *testing.T) {
	p := NewHeartbeatPlanner(heartbeat.Keys{Prefix: "_"})
	for i, c := range []struct {
		shards []string
		news   bool
	}{{nil, false}, {[]string{"a", "b"}, true}, {[]string{"b", "a"}, false}, {[]string{"a", "c"}, true},
		{[]string{"a"}, true}, {[]string{"a"}, false}, {[]string{"a", "b"}, true}, {nil, true}} {
		p.Open(c.shards)
		news := false
		select {
		case <-p.changed:
			news = true
		default:
		}
		if news != c.news {
			t.Errorf("listing %d, %v: %v", i, c.shards, news)
		}
	}
}
