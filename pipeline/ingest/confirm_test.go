package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// rotated answers DescribeStream for a stream in which every parent has ended and has one child,
// but for those that it shows without an end, and those that it leaves out. It takes no time.
type rotated struct {
	parents           int
	open, left, young map[int]bool // shown without an end; left out; shown without a child

	mu       sync.Mutex // covers what follows
	calls    int
	children int         // of the calls, those for the children of one shard
	listings []time.Time // when complete listings began
}

func parentID(n int) string { return fmt.Sprintf("shardId-%020d-a", n) }

func childID(n int) string { return fmt.Sprintf("shardId-%020d-b", n) }

func (s *rotated) Do(r *http.Request) (*http.Response, error) {
	var in struct {
		ExclusiveStartShardId string
		ShardFilter           *struct{ ShardId string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeStream") {
		return nil, fmt.Errorf("an unexpected call of %s", r.Header.Get("X-Amz-Target"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if in.ShardFilter != nil {
		s.children++
	} else if in.ExclusiveStartShardId == "" {
		s.listings = append(s.listings, time.Now())
	}
	var shards []string
	last, more := "", ""
	add := func(id, rest string) {
		if id <= in.ExclusiveStartShardId || more != "" {
			return
		}
		if len(shards) == 100 {
			more = fmt.Sprintf(`,"LastEvaluatedShardId":%q`, last)
			return
		}
		last = id
		shards = append(shards, fmt.Sprintf(`{"ShardId":%q%s}`, id, rest))
	}
	first, until, from := 0, s.parents, in.ExclusiveStartShardId
	if in.ShardFilter != nil {
		from = in.ShardFilter.ShardId
	}
	if from != "" {
		if _, err := fmt.Sscanf(from, "shardId-%020d-", &first); err != nil {
			return nil, err
		}
	}
	if in.ShardFilter != nil {
		until = first + 1
	}
	for n := first; n < until && more == ""; n++ {
		end, one := `,"EndingSequenceNumber":"9"`, in.ShardFilter != nil
		if s.open[n] {
			end = ""
		}
		if !one && !s.left[n] {
			add(parentID(n), `,"SequenceNumberRange":{"StartingSequenceNumber":"1"`+end+`}`)
		}
		if end != "" && !s.young[n] && !s.left[n] {
			add(childID(n), fmt.Sprintf(`,"ParentShardId":%q,"SequenceNumberRange":{"StartingSequenceNumber":"9"}`, parentID(n)))
		}
	}
	body := fmt.Sprintf(`{"StreamDescription":{"StreamArn":"arn","StreamStatus":"ENABLED","Shards":[%s]%s}}`,
		strings.Join(shards, ","), more)
	return &http.Response{
		StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: int64(len(body)),
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)},
		},
	}, nil
}

// listerOf returns a lister of the stream, and a source. What it stores is taken and forgotten.
func listerOf(t *testing.T, ctx context.Context, s *rotated) (*lister, *source.Source) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	src, err := source.Open(ctx, source.Options{
		Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", HTTPClient: s,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	h := newHandoff(time.Second)
	l := newLister(&Options{Life: &life.Life{Logger: zap.NewNop()}, Source: src}, nil, h, newProver(zap.NewNop()))
	l.summary = streamSummary{stream: "arn", shards: 2 * s.parents}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case r := <-h.requests:
				r.done <- nil
			}
		}
	}()
	return l, src
}

// TestGenerationOfShardsIsAnsweredByOneListing: ten thousand shards that end within seconds are
// asked about by few calls, and not by one for each, which would take twenty minutes. The listing
// begins behind the end of each. What it does not confirm is no end: a shard that it shows without
// one, and a shard that it lacks although it was read just now.
func TestGenerationOfShardsIsAnsweredByOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const parents, open, lacking = 10_000, 4711, 4712
		s := &rotated{parents: parents, open: map[int]bool{open: true}, left: map[int]bool{lacking: true}}
		l, src := listerOf(t, ctx, s)
		c := newConfirmer(l.o, l)
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		added := make([]time.Time, parents)
		go func() {
			for n := range parents {
				d := doubt{reader: src.NewReader(source.Start{
					Feed: change.Feed{Stream: "arn", Shard: parentID(n)}, Read: change.MillisOf(time.Now()),
				})}
				if n == lacking {
					d.gap = &source.GapError{Feed: d.reader.Feed(), Err: source.ErrShardGone}
				}
				added[n] = time.Now()
				if c.add(d); n%100 == 0 {
					<-time.After(50 * time.Millisecond) // of idle shards, which are read within a second or more
				}
			}
		}()
		one := 0
		for range parents {
			v := <-c.verdicts
			var n int
			if _, err := fmt.Sscanf(v.reader.Feed().Shard, "shardId-%020d-a", &n); err != nil {
				t.Fatal(err)
			}
			want := protocol.ReadAgain
			if n == open || n == lacking {
				want = protocol.ReadOn
			}
			if v.fate != want || v.childless && want == protocol.ReadAgain {
				t.Errorf("%s: fate %d, childless %t", v.reader.Feed().Shard, v.fate, v.childless)
			}
			s.mu.Lock()
			switch began := s.listings; {
			case len(began) == 0:
				one++
			case n != lacking && added[n].After(began[len(began)-1]):
				t.Errorf("%s ended behind the begin of the listing that answers", v.reader.Feed().Shard)
			}
			s.mu.Unlock()
			v.reader.Close()
		}
		if most := source.ListingCalls(2*parents) + fewEnds; s.calls > most || len(s.listings) != 1 || one > fewEnds+1 {
			t.Errorf("%d calls, %d of them for one shard, and %d listings", s.calls, s.children, len(s.listings))
		}
		cancel()
		<-ended
	})
}

// TestFewEndsAreAskedAboutOneByOne: the rotation of one shard of a large stream costs a call, and
// not a listing of it.
func TestFewEndsAreAskedAboutOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &rotated{parents: 1000}
		l, src := listerOf(t, ctx, s)
		c := newConfirmer(l.o, l)
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		for n := range 100 {
			r := src.NewReader(source.Start{Feed: change.Feed{Stream: "arn", Shard: parentID(n)}})
			c.add(doubt{reader: r})
			if v := <-c.verdicts; v.fate != protocol.ReadAgain || v.childless {
				t.Errorf("%s: fate %d, childless %t", v.reader.Feed().Shard, v.fate, v.childless)
			}
			r.Close()
			<-time.After(time.Second)
		}
		if s.calls != 100 || len(s.listings) > 0 {
			t.Errorf("%d calls, %d listings", s.calls, len(s.listings))
		}
		cancel()
		<-ended
	})
}

// TestManyShardsWithoutChildrenAreListedTogether: children may be listed seconds late. Ten calls
// for each shard would take hours.
func TestManyShardsWithoutChildrenAreListedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &rotated{parents: 10_000, young: map[int]bool{}}
		for n := range s.parents {
			s.young[n] = true
		}
		l, _ := listerOf(t, ctx, s)
		var all sync.WaitGroup
		for n := range s.parents {
			all.Go(func() {
				if err := l.findChildren(ctx, change.Feed{Stream: "arn", Shard: parentID(n)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.calls > 10*fewEnds || len(l.listNow) != 1 {
			t.Errorf("%d calls, %d listings requested", s.calls, len(l.listNow))
		}
	})
}
