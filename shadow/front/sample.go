package front

import (
	"context"
	"hash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

// Counts are the exchanges that a front has passed on. Passed is the sum of Taken, Unsampled and
// Dropped at any time.
type Counts struct {
	Passed    int64 // exchanges that ended, whole or cut
	Taken     int64 // given to Tap, or waiting for it
	Unsampled int64 // not in the share
	Dropped   int64 // in the share, but the queue had no room

	Refused     int64 // requests that the front answered itself, because they are not for the service
	Unreached   int64 // requests that the front answered with 502
	Connections int64 // of clients, now
}

// queue holds exchanges until Tap takes them. Its limit in bytes covers those that are under way
// too. Nothing that an exchange does waits for it.
type queue struct {
	share   float64
	limit   int64
	answers bool // their bodies are taken along

	mu      sync.Mutex
	counts  Counts
	used    int64
	waiting []*sample
	more    chan struct{} // has a token while something may wait
}

func newQueue(o *Options) *queue {
	return &queue{share: o.Share, limit: o.Memory, answers: o.Answers, more: make(chan struct{}, 1)}
}

// sample is one exchange under way. The goroutine that reads the client has its request, and the
// one that reads the service has its answer.
type sample struct {
	exchange.Exchange
	queue           *queue
	chosen          bool
	toHead          bool // the method is HEAD: the answer has no body
	continued       bool // the front has answered 100
	request, answer capture
	under           atomic.Int32 // how many of the two goroutines are not done
}

// begin returns the exchange of a request, when its head was read.
func (q *queue) begin(h *head) *sample {
	s := &sample{queue: q, chosen: q.share > 0 && rand.Float64() < q.share, toHead: string(h.method) == "HEAD"}
	s.Begin = time.Now()
	s.under.Store(2)
	if s.chosen {
		s.Target = h.text("x-amz-target", exchange.MaxText)
		s.Request.Encoding = h.text("content-encoding", exchange.MaxText)
		s.request.begin(q, h.length)
	}
	return s
}

// beginAnswer is called with the head of the answer.
func (s *sample) beginAnswer(h *head) {
	s.Status = h.status
	if s.chosen && s.queue.answers {
		s.Answer.Encoding = h.text("content-encoding", exchange.MaxText)
		s.answer.begin(s.queue, h.length)
	}
}

// done is called once by each of the two goroutines. The later one gives the exchange to the queue.
func (s *sample) done() {
	if s.under.Add(-1) == 0 {
		s.queue.add(s)
	}
}

// add counts an exchange, and keeps it for Tap if there is room.
func (q *queue) add(s *sample) {
	kept := s.request.reserved + s.answer.reserved
	s.Request.Bytes, s.Request.Size = s.request.bytes, s.request.size
	s.Answer.Bytes, s.Answer.Size = s.answer.bytes, s.answer.size
	fields := (&exchange.Exchange{Target: s.Target}).Memory()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counts.Passed++
	switch {
	case !s.chosen:
		q.counts.Unsampled++
		return
	case s.request.crowded || s.answer.crowded || q.used+fields > q.limit:
		q.counts.Dropped++
		q.used -= kept
		return
	}
	q.counts.Taken++
	q.used += fields
	s.request.reserved = kept + fields // of all of it from now on
	q.waiting = append(q.waiting, s)
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// reserve takes room for n bytes, if there is any.
func (q *queue) reserve(n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+n > q.limit {
		return false
	}
	q.used += n
	return true
}

func (q *queue) release(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= n
}

// run gives exchanges to tap until ctx ends. What waits then is dropped.
func (q *queue) run(ctx context.Context, tap func(*exchange.Exchange)) {
	for {
		select {
		case <-ctx.Done():
			q.dropWaiting()
			return
		case <-q.more:
		}
		for ctx.Err() == nil {
			s := q.next()
			if s == nil {
				break
			}
			tap(&s.Exchange)
			q.release(s.request.reserved)
		}
	}
}

// next removes the exchange that has waited longest; nil: none waits.
func (q *queue) next() *sample {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting = nil
		return nil
	}
	s := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return s
}

func (q *queue) dropWaiting() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.waiting {
		q.used -= s.request.reserved
	}
	n := int64(len(q.waiting))
	q.counts.Taken -= n
	q.counts.Dropped += n
	q.waiting = nil
}

// capture is the size of a body and, while it is not too long, its content.
type capture struct {
	size     int64
	bytes    []byte
	taking   bool
	crowded  bool // the queue had no room
	queue    *queue
	reserved int64
	hash     hash.Hash // gets the content too; nil: none
}

// begin takes the content along from now on. length is the body's; -1: not known.
func (c *capture) begin(q *queue, length int64) {
	c.queue, c.taking = q, length <= exchange.MaxBody
	if c.taking {
		c.bytes = []byte{}
		c.grow(max(length, 0))
	}
}

// add adds a piece of the content.
func (c *capture) add(p []byte) {
	c.size += int64(len(p))
	if c.hash != nil {
		_, _ = c.hash.Write(p) // never fails
	}
	if !c.taking {
		return
	}
	if c.size > exchange.MaxBody {
		c.stop()
		return
	}
	if c.size > int64(cap(c.bytes)) {
		c.grow(max(c.size, min(2*int64(cap(c.bytes)), exchange.MaxBody)))
	}
	if c.taking {
		c.bytes = append(c.bytes, p...)
	}
}

// grow makes room for size bytes in all.
func (c *capture) grow(size int64) {
	more := size - int64(cap(c.bytes))
	if more <= 0 {
		return
	}
	if !c.queue.reserve(more) {
		c.stop()
		c.crowded = true
		return
	}
	c.reserved += more
	c.bytes = append(make([]byte, 0, size), c.bytes...)
}

// stop drops the content.
func (c *capture) stop() {
	if c.queue != nil {
		c.queue.release(c.reserved)
	}
	c.taking, c.bytes, c.reserved = false, nil, 0
}
