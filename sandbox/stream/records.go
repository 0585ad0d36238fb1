package stream

import (
	"encoding/json"
	"net/http"
	"sync"
)

const (
	maxRecords   = 1000
	maxPageBytes = 1 << 20
	maxSpares    = 4 // reply buffers kept for reuse
)

type getRecordsInput struct {
	ShardIterator string
	Limit         *int
}

// getRecords answers GetRecords: a page of encoded records.
func (e *Engine) getRecords(body []byte) ([]byte, *serviceError) {
	var in getRecordsInput
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refusal("SerializationException", "%v", err)
	}
	limit := maxRecords
	if in.Limit != nil {
		limit = *in.Limit
	}
	switch {
	case limit < 1:
		return nil, constraint(limit, "limit", "have value greater than or equal to 1")
	case limit > maxRecords:
		return nil, constraint(limit, "limit", "have value less than or equal to 1000")
	}
	it, ok := parseIterator(in.ShardIterator)
	if !ok {
		return nil, invalid("Invalid ShardIterator: %.100q", in.ShardIterator)
	}
	sh, bad := e.shardOf(it)
	if bad != nil {
		return nil, bad
	}
	return e.page(sh, it, limit), nil
}

// shardOf returns the shard of an iterator, or the error of an iterator that is throttled, expired
// or trimmed.
func (e *Engine) shardOf(it *iterator) (*shard, *serviceError) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, bad := e.find(it.arn)
	if bad != nil {
		return nil, bad
	}
	sh, bad := e.readable(s, it.shard)
	if bad != nil {
		return nil, bad
	}
	now := e.now()
	if code := e.faults.refuse(sh.id, it.reader); code != "" {
		status := http.StatusBadRequest
		if code == "InternalServerError" {
			status = http.StatusInternalServerError
		}
		return nil, &serviceError{status, code, "Rate exceeded for shard " + sh.id}
	}
	if life, _ := e.faults.iteratorLife(); now.UnixMilli()-it.issued > life.Milliseconds() {
		return nil, refusal("ExpiredIteratorException", "The shard iterator has expired and can no longer be used.")
	}
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if sh.fullyTrimmed() || it.pos <= sh.trimmed {
		return nil, trimmedAccess()
	}
	return sh, nil
}

// page returns the reply of GetRecords. Whatever faults are in force, a page without a next
// iterator is the last of a closed shard.
func (e *Engine) page(sh *shard, it *iterator, limit int) []byte {
	next := *it
	next.issued = e.now().UnixMilli()
	if e.faults.takeEmpty(sh.id) {
		return e.reply(nil, &next)
	}
	if e.faults.takeFalseEnd(sh.id) {
		return e.reply(nil, nil)
	}
	spans, n, pos, drained := sh.page(it.pos, limit, maxPageBytes)
	next.pos = pos
	e.served.Add(uint64(n))
	if _, late := e.faults.iteratorLife(); drained && (n == 0 || !late) {
		return e.reply(spans, nil)
	}
	return e.reply(spans, &next)
}

// reply writes a page; a nil next ends the shard.
func (e *Engine) reply(spans []span, next *iterator) []byte {
	size := 1 << 10
	for _, r := range spans {
		size += len(r)
	}
	reply := e.buffer(size)
	reply = append(reply, '{')
	if next != nil {
		reply = append(reply, `"NextShardIterator":"`...)
		reply = append(reply, next.text()...)
		reply = append(reply, `",`...)
	}
	reply = append(reply, `"Records":[`...)
	for _, r := range spans {
		reply = append(reply, r...)
	}
	if len(spans) > 0 {
		reply = reply[:len(reply)-1] // the comma after the last record
	}
	return append(reply, "]}"...)
}

// replyBuffers keeps a few reply buffers for reuse, so that serving pages makes no garbage.
type replyBuffers struct {
	mu   sync.Mutex
	bufs [][]byte
}

// buffer returns an empty buffer for a reply of that size.
func (e *Engine) buffer(size int) []byte {
	s := &e.buffers
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.bufs); k > 0 {
		buf := s.bufs[k-1]
		s.bufs = s.bufs[:k-1]
		if cap(buf) >= size {
			return buf[:0]
		}
	}
	return make([]byte, 0, size)
}

// Release gives a reply of Handle back for reuse; the caller must not touch it again. Calling it is
// optional.
func (e *Engine) Release(reply []byte) {
	if cap(reply) < 64<<10 || cap(reply) > 8<<20 {
		return
	}
	s := &e.buffers
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bufs) < maxSpares {
		s.bufs = append(s.bufs, reply)
	}
}
