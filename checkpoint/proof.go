package checkpoint

import "github.com/tailrace-cdc/replicator/change"

// Proof is what heartbeats prove. The zero Proof belongs to a table without heartbeats.
type Proof struct {
	Since   change.Millis // the time of this owner's first beat with heartbeats, behind the snapshot
	Assumed int           // open shards out of which no recent record has come
	Read    change.Millis // everything created up to here was read; 0: nothing is proved

	Passed change.Millis // the newest time that every sink is known to have passed
	Next   change.Millis // a later one, which a sink passes with the entry
	Entry  uint64
}

// Note takes what a beat at a time proves: that everything created up to read is in the log, with
// entry as its newest entry with changes. passed reports whether every sink has applied an entry.
// While a sink is behind, the times in between are not kept.
func (p *Proof) Note(at change.Millis, assumed int, read change.Millis, entry uint64, passed func(uint64) bool) {
	if p.Since == 0 && (assumed > 0 || read > 0) {
		p.Since = at
	}
	p.Assumed, p.Read = assumed, read
	if p.Passed = p.Applied(passed); read > 0 && (p.Next == 0 || passed(p.Entry)) {
		p.Next, p.Entry = read, entry
	}
}

// Applied returns the time up to which every change is proved to be durable at every sink; 0 when
// none is.
func (p *Proof) Applied(passed func(uint64) bool) change.Millis {
	if p.Next > 0 && passed(p.Entry) {
		return max(p.Passed, p.Next)
	}
	return p.Passed
}
