package stream

import (
	"encoding/json"
	"net/http"
	"sync"
)

const (
	maxRecords   = 1000
	maxPageBytes = 1 << 20
	spareReplies = 4
)

type getRecordsInput struct {
	ShardIterator string
	Limit         *int
}

func (e *Engine) getRecords(body []byte) ([]byte, *serviceError) {
	var in getRecordsInput
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refused("SerializationException", "%v", err)
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
	sh, f := e.open(it)
	if f != nil {
		return nil, f
	}
	return e.page(sh, it, limit), nil
}

// open checks everything about an iterator and returns its shard.
func (e *Engine) open(it *iterator) (*shard, *serviceError) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, f := e.find(it.arn)
	if f != nil {
		return nil, f
	}
	sh, f := e.readable(s, it.shard)
	if f != nil {
		return nil, f
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
		return nil, refused("ExpiredIteratorException", "The shard iterator has expired and can no longer be used.")
	}
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if sh.wholly() || it.pos <= sh.trimmed {
		return nil, trimmedAccess()
	}
	return sh, nil
}

// page builds the reply. Whatever faults are in force, a page without a next iterator is the
// last of a closed shard.
func (e *Engine) page(sh *shard, it *iterator, limit int) []byte {
	next := *it
	next.issued = e.now().UnixMilli()
	if e.faults.takeEmpty(sh.id) {
		return e.reply(nil, &next)
	}
	runs, n, pos, drained := sh.page(it.pos, limit, maxPageBytes)
	next.pos = pos
	e.served.Add(uint64(n))
	if _, late := e.faults.iteratorLife(); drained && (n == 0 || !late) {
		return e.reply(runs, nil)
	}
	return e.reply(runs, &next)
}

func (e *Engine) reply(runs []run, next *iterator) []byte {
	size := 1 << 10
	for _, r := range runs {
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
	for _, r := range runs {
		reply = append(reply, r...)
	}
	if len(runs) > 0 {
		reply = reply[:len(reply)-1] // the comma after the last record
	}
	return append(reply, "]}"...)
}

// spares keeps a few reply buffers, so that serving pages makes no garbage.
type spares struct {
	mu   sync.Mutex
	bufs [][]byte
}

func (e *Engine) buffer(size int) []byte {
	s := &e.spares
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

// Release hands a reply of Handle back for reuse; the caller must not touch it again.
// It is never wrong to leave it out.
func (e *Engine) Release(reply []byte) {
	if cap(reply) < 64<<10 || cap(reply) > 8<<20 {
		return
	}
	s := &e.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bufs) < spareReplies {
		s.bufs = append(s.bufs, reply)
	}
}
